// SPDX-License-Identifier: Apache-2.0
#include "support/fork.h"

#include "support/file_system.h"
#include "support/process.h"
#include "support/wait_word.h"

namespace ingot::core {
namespace {

constexpr uint32_t kFree = 0;
constexpr uint32_t kHeld = 1;
constexpr uint32_t kHeldAndAwaited = 2;  // held, and a thread may sleep until it is released
constexpr uint32_t kStates = 3;          // the bits of the states; the count is above them

constinit std::atomic<uint32_t> forks{0};
constinit std::atomic<uint64_t> threads{0};
constinit std::atomic<uint64_t> forking_thread{0};  // the number of the thread that called the last fork

// The files that children close. Slots are used again and never freed: a fork finds the list whole at any
// time.
struct ClosedFile {
  std::atomic<int> file = -1;
  ClosedFile* next = nullptr;
};
constinit std::atomic<ClosedFile*> closed_files{nullptr};

// Whether a slot that held `old` now holds `file`.
bool replace_closed_file(int old, int file) {
  for (ClosedFile* slot = closed_files.load(std::memory_order_acquire); slot != nullptr; slot = slot->next) {
    int expected = old;
    if (slot->file.compare_exchange_strong(expected, file)) return true;
  }
  return false;
}

// Unlike thread ids, numbers are never used again, neither here nor in children.
uint64_t thread_number() {
  constinit thread_local uint64_t number = 0;
  if (number == 0) number = threads.fetch_add(1, std::memory_order_relaxed) + 1;
  return number;
}

void enter_child() {
  forking_thread.store(thread_number(), std::memory_order_relaxed);
  forks.fetch_add(1, std::memory_order_release);
  for (ClosedFile* slot = closed_files.load(); slot != nullptr; slot = slot->next) {
    const int file = slot->file.exchange(-1);
    if (file >= 0) kSystemFiles.close(file);
  }
}

// Registered when the library is loaded: later, a fork by another thread could come first.
__attribute__((constructor)) void watch_forks() { call_in_children(enter_child); }

uint32_t count_bits() { return fork_count() << 2; }

}  // namespace

uint32_t fork_count() { return forks.load(std::memory_order_acquire); }

void close_in_children(int file) {
  if (replace_closed_file(-1, file)) return;
  auto* slot = new ClosedFile;
  slot->file = file;
  slot->next = closed_files.load();
  while (!closed_files.compare_exchange_weak(slot->next, slot)) {
  }
}

void keep_in_children(int file) { replace_closed_file(file, -1); }

bool ForkSafeMutex::is_free(uint32_t word) const {
  if ((word & kStates) == kFree) return true;
  const bool is_inherited = (word & ~kStates) != count_bits();
  return is_inherited && holder_.load(std::memory_order_relaxed) != forking_thread.load();
}

void ForkSafeMutex::lock() {
  uint32_t state = kHeld;
  for (uint32_t word = word_.load(std::memory_order_relaxed);; word = word_.load(std::memory_order_relaxed)) {
    if (is_free(word)) {
      if (word_.compare_exchange_strong(word, count_bits() | state, std::memory_order_acquire)) break;
      continue;
    }
    const uint32_t awaited = (word & ~kStates) | kHeldAndAwaited;
    if (word != awaited && !word_.compare_exchange_strong(word, awaited, std::memory_order_relaxed)) continue;
    sleep_while(word_, awaited);
    state = kHeldAndAwaited;  // others may be asleep
  }
  holder_.store(thread_number(), std::memory_order_relaxed);
}

void ForkSafeMutex::unlock() {
  holder_.store(0, std::memory_order_relaxed);
  if ((word_.exchange(kFree, std::memory_order_release) & kStates) == kHeldAndAwaited) wake(word_);
}

}  // namespace ingot::core
