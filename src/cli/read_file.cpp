// SPDX-License-Identifier: Apache-2.0
#include "cli/read_file.h"

#include <fmt/core.h>

#include <cerrno>
#include <fstream>
#include <iterator>
#include <system_error>

#include "cli/commands.h"
#include "cli/system.h"

namespace ingot::cli {
namespace {

[[noreturn]] void refuse(const std::string& path, int error) {
  throw CommandError(fmt::format("cannot open '{}': {}", path, std::generic_category().message(error)));
}

std::ifstream open(const std::string& path) {
  if (is_folder(path)) refuse(path, EISDIR);  // opening a folder succeeds, but reading fails
  std::ifstream stream(path_to_open(path), std::ios::binary);
  if (!stream) refuse(path, errno);
  return stream;
}

}  // namespace

std::string read_file(const std::string& path) {
  std::ifstream stream = open(path);
  return {std::istreambuf_iterator<char>(stream), {}};
}

void check_readable(const std::string& path) { open(path); }

}  // namespace ingot::cli
