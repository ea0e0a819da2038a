// SPDX-License-Identifier: Apache-2.0
// Operations that need a loop or special cases: exact remainders, integer division without traps, integer
// powers. Operands are scalars, or vectors of the same shape.
#pragma once

#include "backends/cpu/compile/llvm/control_flow.h"
#include "loops/kernel.h"

namespace ingot::core::cpu {

// `usual`, or where `condition` is true what `rare` emits, which is computed for all lanes once any wants it,
// and chosen for those: what an element becomes does not depend on its neighbours.
llvm::Value* branch_rarely(Builder& builder, llvm::Value* condition, llvm::Value* usual, int lanes,
                           const std::function<llvm::Value*()>& rare);

// C's fmod, exact for all operands; f32 or f64.
llvm::Value* floating_remainder(Builder& builder, llvm::Value* a, llvm::Value* b);

// kDivide, kFloorDivide, kModulo, kRemainder; division by zero gives 0, and the quotient that overflows
// wraps.
llvm::Value* integer_division(Builder& builder, loops::Binary op, bool is_signed, llvm::Value* a,
                              llvm::Value* b);

// Wraps; negative exponents give 0, except for the bases 1 and -1.
llvm::Value* integer_power(Builder& builder, bool is_signed, llvm::Value* base, llvm::Value* exponent);

}  // namespace ingot::core::cpu
