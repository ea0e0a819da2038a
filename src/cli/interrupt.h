// SPDX-License-Identifier: Apache-2.0
// Ctrl-C during long operations. Where the process was started with the signal ignored, none of this has an
// effect.
#pragma once

#include <string>

namespace ingot::cli {

// From now on Ctrl-C sets a flag, for code that polls `was_interrupted`; a second one ends the process.
void catch_interrupts();
bool was_interrupted();

// While one lives, Ctrl-C ends the process at once by its signal, after writing the texts to stderr and
// stdout: for work that leaves nothing behind. From `begin_cleanup` on it only sets a flag, as with
// `catch_interrupts`: the work polls it, and cleans up.
class EndOnInterrupt {
 public:
  EndOnInterrupt(std::string message, std::string output);
  EndOnInterrupt(const EndOnInterrupt&) = delete;
  EndOnInterrupt& operator=(const EndOnInterrupt&) = delete;
  ~EndOnInterrupt();

  void begin_cleanup();
  [[noreturn]] void end();  // as Ctrl-C would

 private:
  const std::string message_, output_;
};

}  // namespace ingot::cli
