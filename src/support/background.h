// SPDX-License-Identifier: Apache-2.0
// Work that nobody waits for: one piece after the other, on a thread that lives while there is some. What is
// not done when the process ends is lost. Thread-safe. A forked child has none of its parent's work, and does
// its own.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace ingot::core {

class BackgroundWork {
 public:
  // `most`: bytes of memory that waiting work may hold.
  explicit BackgroundWork(uint64_t most) : most_(most) {}
  ~BackgroundWork();  // waits for the piece at hand, and drops the others
  BackgroundWork(const BackgroundWork&) = delete;
  BackgroundWork& operator=(const BackgroundWork&) = delete;

  // False, and nothing is added, if waiting work would hold too many bytes or there is no thread to do it:
  // the caller does it. What `work` throws is ignored.
  bool add(uint64_t bytes, std::function<void()> work);
  // True if nothing waits any more, false if that takes longer than `patience`.
  bool wait(std::chrono::milliseconds patience);
  size_t waiting();  // pieces, that at hand included

 private:
  struct Queue;
  Queue& queue_of_this_process();

  const uint64_t most_;
  std::atomic<Queue*> queue_{nullptr};
};

}  // namespace ingot::core
