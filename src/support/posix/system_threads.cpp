// SPDX-License-Identifier: Apache-2.0
#include "support/system_threads.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <new>

namespace ingot::core {

BlockedSignals::BlockedSignals() {
  static_assert(sizeof(sigset_t) <= sizeof(before_) && alignof(sigset_t) <= alignof(uint64_t));
  sigset_t all;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, new (before_.data()) sigset_t);
}

BlockedSignals::~BlockedSignals() {
  ::pthread_sigmask(SIG_SETMASK, std::launder(reinterpret_cast<const sigset_t*>(before_.data())), nullptr);
}

void name_thread(std::thread& thread, const std::string& name) {
  ::pthread_setname_np(thread.native_handle(), name.c_str());
}

int allowed_threads() {
  constexpr int kMostCpus = 1 << 16;
  for (int cpus = 1024; cpus <= kMostCpus; cpus *= 2) {  // the system call fails if the mask is too small
    cpu_set_t* mask = CPU_ALLOC(cpus);
    if (mask == nullptr) break;
    const size_t size = CPU_ALLOC_SIZE(cpus);
    const int count = ::sched_getaffinity(0, size, mask) == 0 ? CPU_COUNT_S(size, mask) : 0;
    CPU_FREE(mask);
    if (count > 0) return count;
  }
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace ingot::core
