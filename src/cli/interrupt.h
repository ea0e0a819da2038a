// SPDX-License-Identifier: Apache-2.0
// Ctrl-C during long work.
#pragma once

#include <string>

namespace ingot::cli {

// From now on Ctrl-C is noted, for work that asks `was_interrupted`; a second one ends the process.
void catch_interrupts();
bool was_interrupted();

// While one lives, Ctrl-C ends the process at once by its signal, after the texts went to stderr and stdout:
// for work that leaves nothing behind. The work between `begin_cleanup` and the end is interrupted as by
// `catch_interrupts`: it looks, and cleans up.
class EndOnInterrupt {
 public:
  EndOnInterrupt(std::string message, std::string output);
  EndOnInterrupt(const EndOnInterrupt&) = delete;
  EndOnInterrupt& operator=(const EndOnInterrupt&) = delete;
  ~EndOnInterrupt();

  void begin_cleanup();
  [[noreturn]] void end();  // what Ctrl-C would do

 private:
  const std::string message_, output_;
};

}  // namespace ingot::cli
