// SPDX-License-Identifier: Apache-2.0
#include "support/wait_word.h"

#include <windows.h>

namespace ingot::core {

static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t));

void sleep_while(std::atomic<uint32_t>& word, uint32_t value) {
  ::WaitOnAddress(&word, &value, sizeof(value), INFINITE);
}

void wake(std::atomic<uint32_t>& word) { ::WakeByAddressSingle(&word); }

void wake_all(std::atomic<uint32_t>& word) { ::WakeByAddressAll(&word); }

}  // namespace ingot::core
