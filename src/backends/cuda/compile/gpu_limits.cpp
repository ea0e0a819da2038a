// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/gpu_limits.h"

#include <algorithm>
#include <charconv>

namespace ingot::core::cuda {

// Shared memory per compute capability: CUDA C++ Programming Guide, table of technical specifications.
GpuLimits limits_of(std::string_view architecture) {
  constexpr int64_t kKilobyte = 1024;
  int number = 0;
  const size_t digits = std::min(architecture.find_first_of("0123456789"), architecture.size());
  std::from_chars(architecture.data() + digits, architecture.data() + architecture.size(), number);
  const bool warp_groups = architecture == "sm_90a";
  if (number == 80 || number == 87) return {163 * kKilobyte, false, false};
  if (number < 90) return {99 * kKilobyte, false, false};
  if (number >= 120) return {99 * kKilobyte, true, false};
  return {227 * kKilobyte, true, warp_groups};
}

}  // namespace ingot::core::cuda
