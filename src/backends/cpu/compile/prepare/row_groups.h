// SPDX-License-Identifier: Apache-2.0
// Stages of a kernel that can share one loop over their row.
#pragma once

#include <vector>

#include "loops/kernel.h"

namespace ingot::core::cpu {

// Consecutive stages, each a row or a reduction over one loop of the same extent, of which later ones read
// the rows of earlier ones only at their own element: a softmax's exponentials and their sum. Unifies the
// names of their loops. Every stage is in exactly one group; most are alone.
std::vector<std::vector<int>> join_row_stages(loops::Kernel& kernel);

}  // namespace ingot::core::cpu
