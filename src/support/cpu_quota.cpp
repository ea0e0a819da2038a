// SPDX-License-Identifier: Apache-2.0
#include "support/cpu_quota.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>
#include <vector>

#include "support/error.h"
#include "support/file.h"
#include "support/system_threads.h"
#include "support/thread_pool.h"

namespace ingot::core {
namespace {

std::string read_or_empty(const std::filesystem::path& path) {
  try {
    return read_text_file(path);
  } catch (const Error&) {
    return {};
  }
}

// Returns the text up to `separator`, and removes both from `rest`.
std::string_view take(std::string_view& rest, char separator) {
  const size_t end = std::min(rest.find(separator), rest.size());
  const std::string_view result = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return result;
}

std::optional<double> ratio(std::string_view quota, std::string_view period) {
  int64_t numerator = 0;
  int64_t denominator = 0;
  const auto parse = [](std::string_view text, int64_t& value) {
    return std::from_chars(text.data(), text.data() + text.size(), value).ec == std::errc();
  };
  if (!parse(quota, numerator) || !parse(period, denominator)) return std::nullopt;  // "max"
  if (numerator <= 0 || denominator <= 0) return std::nullopt;                       // -1
  return static_cast<double>(numerator) / static_cast<double>(denominator);
}

// Version 2: one file "QUOTA PERIOD"; version 1: two files.
std::optional<double> quota_of_group(const std::filesystem::path& folder) {
  const std::string both = read_or_empty(folder / "cpu.max");
  std::string_view rest = both;
  const std::string_view first = take(rest, ' ');
  if (!both.empty()) return ratio(first, rest);
  return ratio(read_or_empty(folder / "cpu.cfs_quota_us"), read_or_empty(folder / "cpu.cfs_period_us"));
}

void keep_smaller(std::optional<double>& smallest, std::optional<double> quota) {
  if (quota && (!smallest || *quota < *smallest)) smallest = quota;
}

bool lists_cpu(std::string_view controllers) {
  while (!controllers.empty()) {
    if (take(controllers, ',') == "cpu") return true;
  }
  return false;
}

}  // namespace

std::optional<double> cpu_quota(std::string_view groups, const std::filesystem::path& root) {
  std::optional<double> smallest;
  while (!groups.empty()) {
    std::string_view line = take(groups, '\n');  // "ID:CONTROLLERS:/PATH", of version 2 "0::/PATH"
    take(line, ':');
    const std::string_view controllers = take(line, ':');
    const bool version2 = controllers.empty();
    if (!version2 && !lists_cpu(controllers)) continue;
    const std::filesystem::path base = version2 ? root : root / "cpu";
    std::filesystem::path group = std::filesystem::path(line).relative_path();
    // Inside a container the path may be the host's; then only the root of the mount exists.
    for (; !group.empty(); group = group.parent_path()) keep_smaller(smallest, quota_of_group(base / group));
    keep_smaller(smallest, quota_of_group(base));
  }
  return smallest;
}

int available_threads() {
  const int threads = allowed_threads();
  const auto quota = cpu_quota(read_or_empty("/proc/self/cgroup"), "/sys/fs/cgroup");
  if (!quota || *quota >= threads) return threads;
  return std::max(1, static_cast<int>(std::ceil(*quota)));
}

}  // namespace ingot::core
