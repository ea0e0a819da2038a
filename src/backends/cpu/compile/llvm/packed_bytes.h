// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/cpu/compile/llvm/control_flow.h"

namespace ingot::core::cpu {

// Vectors of 512 bits of `lanes` numbers that AVX-512 packs to bytes: two or four.
bool packs_bytes(Builder& builder, int lanes);

// The bytes of `whole`, a vector of i32 that was limited to constants, rounded and moved by a constant, as
// the quantization of f32 is. Packing saturates: the smallest byte needs no limit of its own. Null if `whole`
// is anything else, or there are other numbers of lanes than packs_bytes says.
llvm::Value* packed_bytes(Builder& builder, llvm::Value* whole, bool is_signed);

}  // namespace ingot::core::cpu
