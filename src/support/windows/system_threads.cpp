// SPDX-License-Identifier: Apache-2.0
#include "support/system_threads.h"

#include <pthread.h>
#include <windows.h>

#include <algorithm>
#include <bit>

namespace ingot::core {

BlockedSignals::BlockedSignals() = default;
BlockedSignals::~BlockedSignals() = default;

void name_thread(std::thread& thread, const std::string& name) {
  ::pthread_setname_np(thread.native_handle(), name.c_str());
}

// The mask has the processors of one group: up to 64. A process of several groups has an empty mask.
int allowed_threads() {
  DWORD_PTR own = 0, all = 0;
  const bool is_known = ::GetProcessAffinityMask(::GetCurrentProcess(), &own, &all) != 0 && own != 0;
  const int count = is_known ? std::popcount(static_cast<uint64_t>(own))
                             : static_cast<int>(::GetActiveProcessorCount(ALL_PROCESSOR_GROUPS));
  return std::max(1, count);
}

}  // namespace ingot::core
