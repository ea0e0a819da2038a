// SPDX-License-Identifier: Apache-2.0
// How a kernel is vectorized: decided from the Loop IR alone, before any code is emitted.
#pragma once

#include <string>

#include "loops/kernel.h"
#include "support/cpu_features.h"

namespace ingot::core::cpu {

struct LanePlan {
  // Lanes are adjacent points of this parallel loop, the innermost one. Empty: points are computed one at a
  // time, and lanes are along the innermost loop of each stage.
  std::string variable;
  int lanes = 1;       // of the main loop: one or several registers
  int tail_lanes = 1;  // of the masked tail loop; 1: element by element
  int64_t grain = 1;   // parts of the work range start at multiples of it
};

LanePlan plan_lanes(const loops::Kernel& kernel, CpuFeatures features);

// Offset in elements of an element of a buffer's storage.
Dim element_offset(const loops::Buffer& buffer, const std::vector<Dim>& index);

// Ranges of symbols, loop variables and bindings together.
SymbolTable all_ranges(const loops::Kernel& kernel);

}  // namespace ingot::core::cpu
