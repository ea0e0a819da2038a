// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/gpu_limits.h"

#include "backends/cuda/images/architecture.h"

namespace ingot::core::cuda {

GpuLimits limits_of(std::string_view text) {
  const Architecture architecture =
      parse_architecture(text).value_or(Architecture{.number = kFirstArchitecture});
  return {shared_limit(architecture), architecture.number >= kFirstToOverlap, text == "sm_90a"};
}

}  // namespace ingot::core::cuda
