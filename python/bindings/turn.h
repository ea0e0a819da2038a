// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>

namespace ingot::python {

// Counts forks from now on; called when the module is loaded.
void watch_forks();

// A lock that threads wait for without the GIL. A fork frees it: its holder may be a thread that the child
// does not have.
class Turn {
 public:
  Turn();
  Turn(const Turn&) : Turn() {}         // another lock
  std::unique_lock<std::mutex> take();  // with the GIL

 private:
  std::unique_ptr<std::mutex> mutex_ = std::make_unique<std::mutex>();
  int forks_;  // the fork count of the process that created the mutex
};

}  // namespace ingot::python
