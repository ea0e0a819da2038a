// SPDX-License-Identifier: Apache-2.0
#include "api/compiler/cache_use.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/core.h>

#include "api/compiler/caller_tier.h"
#include "api/runtime/host_access.h"
#include "servers/open_server_tier.h"
#include "servers/server_address.h"
#include "support/environment.h"
#include "support/error.h"

namespace ingot::core::api {
namespace {

// An empty text is none.
bool leaves_out(const std::map<std::string, std::string>& rows, const std::string& option) {
  constexpr auto kTexts = std::to_array<std::string_view>({"address", "file"});
  const auto given = rows.find(option);
  if (given == rows.end() || !given->second.empty()) return given == rows.end();
  const auto info = std::ranges::find(all_options(), option, &OptionInfo::name);
  return info != all_options().end() && std::ranges::find(kTexts, info->type) != kTexts.end();
}

// Strict builds have stores of their own: what went wrong with the shared ones was reported long ago.
std::shared_ptr<DiskStore> disk_of(const CacheOptions& options, WritePolicy policy,
                                   const ReportProblem& report) {
  const std::shared_ptr<DiskStore>& own = host().disk_store();
  if (policy == WritePolicy::kNone || options.folder == "off") return nullptr;
  const bool is_read_only = policy == WritePolicy::kReadOnly;
  const auto access = is_read_only ? Host::Access::kReadOnly : Host::Access::kReadWrite;
  if (options.folder.empty()) {
    if (own == nullptr && environment_variable("INGOT_ENGINE_CACHE_DIR") != "off")
      report(
          "cache: nothing is kept on disk, since there is no home directory: set HOME or "
          "INGOT_ENGINE_CACHE_DIR to a folder");
    if (own == nullptr || (!options.strict && !is_read_only)) return own;
    return host().open_disk_store(own->folder(), own->limit(), report, access);
  }
  std::error_code failure;  // leaves an empty path, which the store reports
  return host().open_disk_store(std::filesystem::absolute(options.folder, failure),
                                static_cast<uint64_t>(options.limit), report, access);
}

// Strict builds wait, since they fail of what goes wrong. A caller's store need not outlive its build.
WritePolicies policies_of(const CacheOptions& options) {
  const auto waiting = [](WritePolicy policy) {
    return policy == WritePolicy::kBack ? WritePolicy::kThrough : policy;
  };
  WritePolicies policies = options.writes;
  policies.store = waiting(policies.store);
  if (options.strict) {
    policies.disk = waiting(policies.disk);
    policies.server = waiting(policies.server);
  }
  if (options.read_only && policies.server != WritePolicy::kNone) policies.server = WritePolicy::kReadOnly;
  return policies;
}

std::shared_ptr<EntryTier> server_of(const CacheOptions& options, WritePolicy policy,
                                     const std::function<void(const std::string&)>& log,
                                     const ReportProblem& report) {
  if (policy == WritePolicy::kNone) return nullptr;
  const ServerSettings settings{.address = options.server,
                                .signing_key = policy == WritePolicy::kReadOnly ? "" : options.signing_key,
                                .trusted_keys = options.trusted_keys,
                                .deadline_ms = options.deadline_ms,
                                .ca_file = options.ca_file};
  if (settings.address.empty() || settings.address == "off") return nullptr;
  const auto open = [&] { return open_server_tier(settings, log ? log : [](const std::string&) {}, report); };
  if (options.strict) return open();
  const std::string name = fmt::format("{}\n{}\n{}\n{}\n{}", settings.address, settings.signing_key,
                                       settings.trusted_keys, settings.deadline_ms, settings.ca_file);
  return host().shared_tier(name, open);
}

}  // namespace

void add_variables(std::map<std::string, std::string>& rows) {
  for (const auto& [option, value] : host().build_options()) {
    if (!leaves_out(rows, option)) continue;
    try {
      parse_options({{option, value}});
    } catch (const UserError& error) {
      throw UserError("INGOT-U015",
                      fmt::format("the environment variable {} is \"{}\"", variable_of(option), value),
                      fmt::format("{}, or unset it", error.details().advice));
    }
    rows.insert_or_assign(option, value);
  }
}

void check_server(const CacheOptions& options) {
  if (!options.server.empty() && options.server != "off") parse_server_address(options.server);
}

CacheUse cache_use(const CacheOptions& options, const ingot_cache_store* store,
                   const std::function<void(const std::string&)>& log) {
  const auto warn = [](const std::string& line) {
    if (host().log().wants(LogLevel::kWarning)) host().log().write(LogLevel::kWarning, line);
  };
  const WritePolicies policies = policies_of(options);
  CacheUse use{.reuse = options.reuse,
               .keep = options.keep,
               .disk = nullptr,
               .disk_policy = policies.disk,
               .tiers = {},
               .problems = std::make_shared<CacheProblems>(warn, options.strict),
               .background = &host().background()};
  use.disk = disk_of(options, policies.disk, use.report());
  if (store != nullptr && policies.store != WritePolicy::kNone)
    use.tiers.push_back({std::make_shared<CallerTier>(*store), policies.store});
  if (auto server = server_of(options, policies.server, log, use.report()))
    use.tiers.push_back({std::move(server), policies.server});
  return use;
}

}  // namespace ingot::core::api
