// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/cpu/compile/llvm/control_flow.h"

namespace ingot::core::cpu {

// Truncates floats to integers; values beyond the integer's range become its ends, NaN becomes 0. Values that
// were limited by constants before need no more than the conversion, and rounded ones are converted by the
// instruction that rounds.
llvm::Value* saturated(Builder& builder, llvm::Value* value, llvm::Type* type, bool is_signed);

}  // namespace ingot::core::cpu
