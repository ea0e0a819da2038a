// SPDX-License-Identifier: Apache-2.0
// The share of the machine that control groups leave to this process. For available_threads and its tests.
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

namespace ingot::core {

// The smallest CPU quota between the process's group and the root, in CPUs; nullopt if there is none.
// `groups` is the text of /proc/self/cgroup, `root` the folder where control groups are mounted. Missing or
// malformed files mean "no limit": never throws.
std::optional<double> cpu_quota(std::string_view groups, const std::filesystem::path& root);

}  // namespace ingot::core
