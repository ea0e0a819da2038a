// SPDX-License-Identifier: Apache-2.0
#include "cli/read_file.h"

#include <fmt/core.h>

#include <cerrno>
#include <fstream>
#include <iterator>
#include <system_error>

#include "cli/commands.h"

namespace ingot::cli {
namespace {

[[noreturn]] void refuse(const std::filesystem::path& path, int error) {
  throw CommandError(
      fmt::format("cannot open '{}': {}", path.string(), std::generic_category().message(error)));
}

std::ifstream open(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    refuse(path, EISDIR);  // opening a folder succeeds, but reading fails
  std::ifstream stream(path, std::ios::binary);
  if (!stream) refuse(path, errno);
  return stream;
}

}  // namespace

std::string read_file(const std::filesystem::path& path) {
  std::ifstream stream = open(path);
  return {std::istreambuf_iterator<char>(stream), {}};
}

void check_readable(const std::filesystem::path& path) { open(path); }

}  // namespace ingot::cli
