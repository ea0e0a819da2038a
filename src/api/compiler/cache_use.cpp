// SPDX-License-Identifier: Apache-2.0
#include "api/compiler/cache_use.h"

#include <array>
#include <cstdlib>

#include <fmt/core.h>

#include "api/compiler/caller_tier.h"
#include "api/runtime/host_access.h"
#include "servers/open_server_tier.h"
#include "servers/server_address.h"
#include "support/error.h"

namespace ingot::core::api {
namespace {

struct CacheVariable {
  const char *name, *option;
};

// The folder and its size are not here: the host reads them once. Nor are the server and the files of keys,
// which an option may leave empty.
constexpr std::array kCacheVariables = {
    CacheVariable{"INGOT_CACHE_BUILT_ENGINES", "cache_built_engines"},
    CacheVariable{"INGOT_CACHE_DEADLINE", "cache_deadline"},
    CacheVariable{"INGOT_CACHE_READ_ONLY", "cache_read_only"},
    CacheVariable{"INGOT_REUSE_CACHED_ENGINES", "reuse_cached_engines"},
    CacheVariable{"INGOT_STRICT_CACHE", "strict_cache"},
    CacheVariable{"INGOT_TIMING_CACHE_PATH", "timing_cache_path"},
};

std::string given_or(const std::string& option, const char* variable) {
  const char* value = std::getenv(variable);
  return option.empty() && value != nullptr ? value : option;
}

ServerSettings server_settings(const CacheOptions& options) {
  return {.address = given_or(options.server, "INGOT_CACHE"),
          .signing_key = options.read_only ? "" : given_or(options.signing_key, "INGOT_CACHE_SIGNING_KEY"),
          .trusted_keys = given_or(options.trusted_keys, "INGOT_TRUSTED_KEYS"),
          .deadline_ms = options.deadline_ms};
}

// Strict builds have stores of their own: what went wrong with the shared ones was reported long ago.
std::shared_ptr<DiskStore> disk_of(const CacheOptions& options, const ReportProblem& report) {
  const std::shared_ptr<DiskStore>& own = host().disk_store();
  if (options.folder == "off" || (options.folder.empty() && own == nullptr)) return nullptr;
  if (options.folder.empty())
    return options.strict ? host().open_disk_store(own->folder(), own->limit(), report) : own;
  std::error_code failure;  // leaves an empty path, which the store reports
  return host().open_disk_store(std::filesystem::absolute(options.folder, failure),
                                static_cast<uint64_t>(options.limit), report);
}

std::shared_ptr<EntryTier> server_of(const CacheOptions& options,
                                     const std::function<void(const std::string&)>& log,
                                     const ReportProblem& report) {
  const ServerSettings settings = server_settings(options);
  if (settings.address.empty() || settings.address == "off") return nullptr;
  const auto open = [&] { return open_server_tier(settings, log ? log : [](const std::string&) {}, report); };
  if (options.strict) return open();
  const std::string name = fmt::format("{}\n{}\n{}\n{}", settings.address, settings.signing_key,
                                       settings.trusted_keys, settings.deadline_ms);
  return host().shared_tier(name, open);
}

}  // namespace

void add_cache_variables(std::map<std::string, std::string>& rows) {
  for (const CacheVariable& variable : kCacheVariables) {
    const char* value = std::getenv(variable.name);
    if (value == nullptr || *value == '\0' || rows.contains(variable.option)) continue;
    try {
      parse_options({{variable.option, value}});
    } catch (const UserError& error) {
      throw UserError("INGOT-U015",
                      fmt::format("the environment variable {} is \"{}\"", variable.name, value),
                      fmt::format("{}, or unset it", error.details().advice));
    }
    rows.emplace(variable.option, value);
  }
}

void check_server(const CacheOptions& options) {
  const std::string address = given_or(options.server, "INGOT_CACHE");
  if (!address.empty() && address != "off") parse_server_address(address);
}

CacheUse cache_use(const CacheOptions& options, const ingot_cache_store* store,
                   const std::function<void(const std::string&)>& log) {
  const auto warn = [](const std::string& line) {
    if (host().log().wants(LogLevel::kWarning)) host().log().write(LogLevel::kWarning, line);
  };
  CacheUse use{.reuse = options.reuse,
               .keep = options.keep,
               .disk = nullptr,
               .tiers = {},
               .problems = std::make_shared<CacheProblems>(warn, options.strict)};
  use.disk = disk_of(options, use.report());
  if (store != nullptr) use.tiers.push_back(std::make_shared<CallerTier>(*store));
  if (auto server = server_of(options, log, use.report())) use.tiers.push_back(std::move(server));
  return use;
}

}  // namespace ingot::core::api
