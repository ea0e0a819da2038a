// SPDX-License-Identifier: Apache-2.0
// Error handling shared by the file functions. Private to src/support/.
#pragma once

#include <cerrno>
#include <filesystem>
#include <string_view>

namespace ingot::core {

// Throws the error for an `errno` value: "cannot ACTION 'PATH': cause".
[[noreturn]] void fail_on_file(std::string_view action, const std::filesystem::path& path, int error);

// Repeats a call that a signal interrupted.
template <typename Call>
auto retry_interrupted(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

}  // namespace ingot::core
