// SPDX-License-Identifier: Apache-2.0
// State that must survive fork(). It copies memory, but only the calling thread: the child lacks all others,
// and nobody releases the locks that they held. docs/design/009-fork.md.
#pragma once

#include <atomic>
#include <cstdint>

namespace ingot::core {

// The number of forks between the process that loaded this library and this one. An object that owns threads
// remembers the count; if it has changed, the threads are not in this process.
uint32_t fork_count();

// Children that this process forks from now on close `file`, a descriptor, before fork() returns there: a
// lock of a file lasts until each copy of its descriptor is closed. A fork that another thread begins before
// this call keeps its copy.
void close_in_children(int file);
void keep_in_children(int file);  // before `file` is closed here, since its number is used again

// A mutex whose holder may be missing in a forked child, where it then counts as free. The data that it
// guards must be consistent at every instruction: change it by a single atomic store.
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
  std::atomic<uint64_t> holder_{0};  // its thread number, 0 if not held
};

}  // namespace ingot::core
