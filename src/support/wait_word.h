// SPDX-License-Identifier: Apache-2.0
// Sleeping on a 32-bit word: the only part of the thread pool that differs between operating systems.
#pragma once

#include <atomic>
#include <cstdint>

namespace ingot::core {

// Sleeps while `word` holds `value`; may return early.
void sleep_while(std::atomic<uint32_t>& word, uint32_t value);
// Wakes one thread that sleeps on `word`, if any.
void wake(std::atomic<uint32_t>& word);
// Wakes all of them.
void wake_all(std::atomic<uint32_t>& word);

// Tells the processor that this thread spins.
inline void spin_pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("isb" ::: "memory");  // about as long as x86's pause; "yield" takes no time
#endif
}

}  // namespace ingot::core
