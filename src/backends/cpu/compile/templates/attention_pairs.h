// SPDX-License-Identifier: Apache-2.0
// Pairs of bf16 of adjacent keys, as products of pairs read them: exponentials, and the values that they
// weight.
#pragma once

#include "backends/cpu/compile/templates/matrix_operand.h"

namespace ingot::core::cpu {

// Two vectors of f32, rounded, with their lanes in turns.
llvm::Value* rounded_pairs(Builder& builder, llvm::Value* even, llvm::Value* odd);

struct ValueRows {
  PlacedMatrix values;
  llvm::Value *first, *count;  // keys
  int64_t width;
  int lanes;
};
// Copies the rows to [count / 2, rounded up][width, rounded up to `lanes`] pairs. What pairs with the last
// row of an odd count is 0.
void pack_value_pairs(Scaffold& scaffold, const ValueRows& rows, llvm::Value* to);

}  // namespace ingot::core::cpu
