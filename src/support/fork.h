// SPDX-License-Identifier: Apache-2.0
// What a forked child has to know. fork() copies memory, but of all threads only the one that calls it: the
// child lacks the others, and nobody is left to release the locks that they held. docs/design/009-fork.md.
#pragma once

#include <atomic>
#include <cstdint>

namespace ingot::core {

// How many forks lie between the process that loaded this library and this one. An object that owns threads
// remembers the count; where it differs, the threads are not in this process.
uint32_t fork_count();

// A mutex whose holder may be missing in a forked child, where it then counts as free. The data that it
// guards must be whole at every instruction, so change it by one atomic store.
class ForkSafeMutex {
 public:
  ForkSafeMutex() = default;
  ForkSafeMutex(const ForkSafeMutex&) = delete;
  ForkSafeMutex& operator=(const ForkSafeMutex&) = delete;

  void lock();
  void unlock();

 private:
  bool is_free(uint32_t word) const;

  std::atomic<uint32_t> word_{0};    // the fork count of the holder's process, and one of the states below
  std::atomic<uint64_t> holder_{0};  // its thread number, 0 while there is none
};

}  // namespace ingot::core
