// SPDX-License-Identifier: Apache-2.0
// 64 numbers of fp8 to f32 by look-ups (VBMI): two tables of 128 bytes hold the upper halves of the values,
// which are all of them, since both formats fit bf16. 14 instructions, NaN and subnormal numbers included,
// where conversion by way of f16 takes 32.
#pragma once

#include <vector>

#include "backends/cpu/compile/llvm/control_flow.h"
#include "types/dtype.h"

namespace ingot::core::cpu {

inline constexpr int kTableNumbers = 64;

// The 64 bytes at `pointer` as four vectors. Lane 4i + j of vector v is number 16i + 4v + j: quarters of
// registers stay where they were loaded.
std::vector<llvm::Value*> load_by_tables(Builder& builder, DType stored, llvm::Value* pointer);

// Four vectors in the order of load_by_tables, in the order of the numbers.
std::vector<llvm::Value*> in_order_of_numbers(Builder& builder, const std::vector<llvm::Value*>& vectors);

}  // namespace ingot::core::cpu
