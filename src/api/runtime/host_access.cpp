// SPDX-License-Identifier: Apache-2.0
#include "api/runtime/host_access.h"

#include <array>
#include <atomic>
#include <charconv>
#include <filesystem>
#include <memory>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include "api/runtime/executors.h"
#include "support/environment.h"
#include "support/error.h"
#include "support/paths.h"

namespace ingot::core::api {
namespace {

// Invalid environment variables are reported by the first call that can fail, as for INGOT_THREADS.
Logger logger_of_environment() {
  const std::string level = environment_variable("INGOT_LOG");
  if (level.empty() || level == "off") return {};
  if (level == "warning") return {&write_to_stderr, nullptr, LogLevel::kWarning};
  if (level == "info") return {&write_to_stderr, nullptr, LogLevel::kInfo};
  throw UserError("INGOT-U015", fmt::format("the environment variable INGOT_LOG is \"{}\"", level),
                  "set it to off, warning or info, or unset it");
}

// Options of builds that are variables too. What decides an engine is one only if a whole cluster may want
// it.
constexpr auto kOptionVariables = std::to_array<std::string_view>(
    {"cache", "cache_built_engines", "cache_ca_file", "cache_deadline", "cache_read_only",
     "cache_signing_key", "cache_write_policy", "immutable_weights", "refit_identical_engine_weights",
     "reuse_cached_engines", "strict_cache", "strip_engine_weights", "timing_cache_path", "trusted_keys"});

// Empty variables are not set.
std::map<std::string, std::string, std::less<>> build_options_of_environment() {
  std::map<std::string, std::string, std::less<>> options;
  for (const std::string_view option : kOptionVariables) {
    std::string value = environment_variable(variable_of(option).c_str());
    if (!value.empty()) options.emplace(option, std::move(value));
  }
  return options;
}

// Loads go on while prepared weights are written, unless the variable has another policy.
WritePolicy weights_policy_of_environment() {
  WritePolicies policies{.disk = WritePolicy::kBack};
  const std::string name = variable_of("cache_write_policy");
  const std::string text = environment_variable(name.c_str());
  if (!text.empty() && !parse_write_policies(text, policies))
    throw UserError("INGOT-U015", fmt::format("the environment variable {} is \"{}\"", name, text),
                    fmt::format("set it to {}, or unset it", kWritePolicyForm));
  return policies.disk;
}

// As it is where there is no working folder.
std::filesystem::path absolute_folder(const std::filesystem::path& path) {
  std::error_code failure;
  const std::filesystem::path found = std::filesystem::absolute(path, failure);
  return failure ? path : found;
}

std::filesystem::path cache_folder_of_environment() {
  if (const std::string folder = environment_variable("INGOT_ENGINE_CACHE_DIR"); !folder.empty())
    return folder == "off" ? std::filesystem::path() : absolute_folder(to_path(folder));
  const std::filesystem::path folder = user_cache_folder();
  return folder.empty() ? folder : folder / "ingot";
}

std::unique_ptr<Host> make_host() {
  HostOptions options;
  options.threads = static_cast<int>(read_variable("INGOT_THREADS", options.threads, kMostThreads));
  options.spin_microseconds =
      static_cast<int>(read_variable("INGOT_SPIN", options.spin_microseconds, kMostSpin));
  options.cache_folder = cache_folder_of_environment();
  options.cache_limit = static_cast<uint64_t>(
      read_variable("INGOT_ENGINE_CACHE_SIZE", static_cast<int64_t>(options.cache_limit), INT64_MAX));
  options.logger = logger_of_environment();
  options.weights_policy = weights_policy_of_environment();
  options.names_ranges = read_variable("INGOT_NVTX", 0, 1) != 0;
  options.build_options = build_options_of_environment();
  return std::make_unique<Host>(options, executors());
}

// Never destroyed: other threads may still be inside a run when the process ends.
constinit std::atomic<Host*> made{nullptr};

}  // namespace

std::string variable_of(std::string_view option) {
  std::string name = "INGOT_";
  for (const char letter : option)
    name += letter >= 'a' && letter <= 'z' ? static_cast<char>(letter - 'a' + 'A') : letter;
  return name;
}

int64_t read_variable(const char* name, int64_t fallback, int64_t most) {
  const std::string value = environment_variable(name);
  if (value.empty()) return fallback;
  int64_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size() || number < 0 || number > most) {
    throw UserError("INGOT-U015", fmt::format("the environment variable {} is \"{}\"", name, value),
                    fmt::format("set it to an integer from 0 to {}, or unset it", most));
  }
  return number;
}

Host* made_host() { return made.load(std::memory_order_acquire); }

// No lock: another thread may fork during the first call.
Host& host() {
  if (Host* const host = made_host()) return *host;
  std::unique_ptr<Host> own = make_host();
  Host* other = nullptr;
  return made.compare_exchange_strong(other, own.get(), std::memory_order_acq_rel) ? *own.release() : *other;
}

}  // namespace ingot::core::api
