// SPDX-License-Identifier: Apache-2.0
// Moves values between lanes.
#pragma once

#include <vector>

#include "backends/cpu/compile/llvm/control_flow.h"
#include "loops/functions.h"

namespace ingot::core::cpu {

// n vectors of n lanes, n a power of two: lane j of result i is lane i of operand j.
std::vector<llvm::Value*> transpose_lanes(Builder& builder, std::vector<llvm::Value*> rows);

// Lane 2i of the result is lane i of `even`, lane 2i + 1 that of `odd`.
llvm::Value* alternate_lanes(Builder& builder, llvm::Value* even, llvm::Value* odd);

// n vectors of n lanes, n a power of two: lane i of the result is the sum of all lanes of operand i.
llvm::Value* sums_of_lanes(Builder& builder, std::vector<llvm::Value*> rows);

// `function` of one vector of f32, with the precision of Loop IR.
llvm::Value* apply_function(Builder& builder, const loops::Function& function, llvm::Value* operand);
// The same of a function that is given as its expansion.
llvm::Value* apply_expansion(Builder& builder, loops::Expr (*expansion)(const loops::Expr& x),
                             llvm::Value* operand);

}  // namespace ingot::core::cpu
