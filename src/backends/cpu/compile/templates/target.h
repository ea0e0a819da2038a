// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/backend.h"
#include "support/cpu_features.h"

namespace ingot::core::cpu {

// Features of the target's processor; none if it has no name.
inline CpuFeatures features_of(const Target& target) {
  return target.device.empty() ? CpuFeatures{} : parse_cpu_features(target.device);
}

}  // namespace ingot::core::cpu
