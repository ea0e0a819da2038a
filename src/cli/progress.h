// SPDX-License-Identifier: Apache-2.0
// Progress of long operations on stderr: one line that is redrawn on a terminal, plain lines elsewhere.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace ingot::cli {

class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();  // ends the line
  void show(const std::string& phase, size_t done, size_t total, double remaining_seconds);

 private:
  bool is_terminal_;
  bool open_ = false;
  std::string phase_;
  std::chrono::steady_clock::time_point shown_{};
};

}  // namespace ingot::cli
