// SPDX-License-Identifier: Apache-2.0
#include "support/cpu_features.h"

#if defined(__linux__) && defined(__x86_64__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace ingot::core {

// For all threads of the process, present and future ones, and for the children that it forks. Asking again
// succeeds.
bool request_cpu_features(CpuFeatures wanted) {
  if (!wanted.has(CpuFeature::kAmxTile)) return true;
#if defined(__linux__) && defined(__x86_64__)
  constexpr unsigned long kRequestPermission = 0x1023, kTileData = 18;  // of arch_prctl
  return ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

}  // namespace ingot::core
