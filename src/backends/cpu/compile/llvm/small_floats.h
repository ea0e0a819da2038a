// SPDX-License-Identifier: Apache-2.0
// Conversions between float and the narrow floating-point formats, on raw bits (i16 or i8), scalars or
// vectors. Round to nearest even; nothing is flushed to zero.
#pragma once

#include "backends/cpu/compile/llvm/control_flow.h"

namespace ingot::core::cpu {

llvm::Value* half_to_float(Builder& builder, llvm::Value* bits);
llvm::Value* float_to_half(Builder& builder, llvm::Value* value);
llvm::Value* bfloat16_to_float(Builder& builder, llvm::Value* bits);
llvm::Value* float_to_bfloat16(Builder& builder, llvm::Value* value);
llvm::Value* e4m3_to_float(Builder& builder, llvm::Value* bits);
llvm::Value* float_to_e4m3(Builder& builder, llvm::Value* value);
llvm::Value* e5m2_to_float(Builder& builder, llvm::Value* bits);
llvm::Value* float_to_e5m2(Builder& builder, llvm::Value* value);

}  // namespace ingot::core::cpu
