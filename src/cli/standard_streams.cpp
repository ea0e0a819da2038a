// SPDX-License-Identifier: Apache-2.0
#include "cli/standard_streams.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>

#include "cli/commands.h"

namespace ingot::cli {

void print_note(const std::string& text) {
  std::fputs(text.c_str(), stderr);
  std::fflush(stderr);
}

void finish_output() {
  errno = 0;
  std::cout.flush();
  const bool is_written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout.good();
  if (is_written) return;
  const std::string reason = errno == 0 ? "" : std::string(": ") + std::strerror(errno);
  throw CommandError("cannot write to the standard output" + reason);
}

}  // namespace ingot::cli
