// SPDX-License-Identifier: Apache-2.0
// Where conditions on the index change along a row, so that each part of the row is computed without them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "backends/cpu/compile/prepare/lane_plan.h"
#include "loops/kernel.h"

namespace ingot::core::cpu {

struct RowBreak {
  Dim at;
  // Conditions of choices, and whether each holds before `at`; from there on it is the other way round.
  std::vector<std::pair<const loops::ExprNode*, bool>> conditions;
};

// In order. Rows along `plan.variable`, as long as whole vectors gain by it: joined, shifted and padded
// tensors are read without masks, and their indices are not compared.
std::vector<RowBreak> row_breaks(const loops::Kernel& kernel, const LanePlan& plan);

}  // namespace ingot::core::cpu
