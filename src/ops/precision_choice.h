// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "ir/graph.h"

namespace ingot::core {

struct PrecisionSite {
  const Node& contraction;
  bool has_fixed_weight;  // operand 1 depends on weights and constants alone
  const SymbolTable& symbols;
};

// The dtypes of a contraction's operands where it may be computed in a narrower one than f32, with sums in
// f32; of integers in i32.
struct PrecisionChoice {
  DType operands = DType::kF32;  // all but the weight
  DType weight = DType::kF32;    // operand 1
  std::string reason;            // why it stays f32, for reports
  bool is_narrow() const { return operands != DType::kF32 || weight != DType::kF32; }
};

}  // namespace ingot::core
