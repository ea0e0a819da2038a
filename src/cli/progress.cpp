// SPDX-License-Identifier: Apache-2.0
#include "cli/progress.h"

#include <fmt/core.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

namespace ingot::cli {
namespace {

volatile std::sig_atomic_t interrupted = 0;

void on_interrupt(int) {
  interrupted = 1;
  std::signal(SIGINT, SIG_DFL);
}

constexpr std::chrono::milliseconds kRedraw(100);

}  // namespace

bool was_interrupted() { return interrupted != 0; }
void catch_interrupts() { std::signal(SIGINT, on_interrupt); }

ProgressLine::ProgressLine() : is_terminal_(isatty(STDERR_FILENO) == 1) {}

ProgressLine::~ProgressLine() {
  if (open_) fmt::print(stderr, "\n");
}

void ProgressLine::show(const std::string& phase, size_t done, size_t total, double remaining_seconds) {
  const bool is_new = phase != phase_;
  phase_ = phase;
  if (!is_terminal_) {
    if (is_new) fmt::print(stderr, "{}\n", phase);
    return;
  }
  const auto now = std::chrono::steady_clock::now();
  if (!is_new && now - shown_ < kRedraw) return;
  shown_ = now;
  const std::string left =
      remaining_seconds >= 0 ? fmt::format(", about {:.1f} s left", remaining_seconds) : "";
  fmt::print(stderr, "\r\033[K{} {}/{}{}", phase, done, total, left);
  std::fflush(stderr);
  open_ = true;
}

}  // namespace ingot::cli
