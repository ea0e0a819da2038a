// SPDX-License-Identifier: Apache-2.0
#include "cli/progress.h"

#include <fmt/core.h>
#include <unistd.h>

#include "cli/standard_streams.h"

namespace ingot::cli {
namespace {

constexpr std::chrono::milliseconds kRedraw(100);

}  // namespace

ProgressLine::ProgressLine() : is_terminal_(isatty(STDERR_FILENO) == 1) {}

ProgressLine::~ProgressLine() {
  if (open_) print_note("\n");
}

void ProgressLine::show(const std::string& phase, size_t done, size_t total, double remaining_seconds) {
  const bool is_new = phase != phase_;
  phase_ = phase;
  if (!is_terminal_) {
    if (is_new) print_note(phase + "\n");
    return;
  }
  const auto now = std::chrono::steady_clock::now();
  if (!is_new && now - shown_ < kRedraw) return;
  shown_ = now;
  const std::string left =
      remaining_seconds >= 0 ? fmt::format(", about {:.1f} s left", remaining_seconds) : "";
  const std::string count = total > 1 ? fmt::format(" {}/{}", done, total) : "";
  print_note(fmt::format("\r\033[K{}{}{}", phase, count, left));
  open_ = true;
}

}  // namespace ingot::cli
