// SPDX-License-Identifier: Apache-2.0
// The part of the machine that the system's control groups leave to this process. For available_threads and
// its tests.
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

namespace ingot::core {

// CPUs that the smallest quota on the way from the process's group to the root allows; nothing if there is
// none. `groups` is the text of /proc/self/cgroup, `root` the folder where control groups are mounted. Never
// throws for what is missing or malformed: that is no limit.
std::optional<double> cpu_quota(std::string_view groups, const std::filesystem::path& root);

}  // namespace ingot::core
