// SPDX-License-Identifier: Apache-2.0
// Converts between elements in memory and values in registers. In memory an element has its stored dtype; in
// registers its arithmetic dtype: bool is i1, and f16, bf16 and fp8 are float. A value is a scalar, or a
// vector of `lanes`.
#pragma once

#include "backends/cpu/compile/llvm/control_flow.h"
#include "types/dtype.h"

namespace ingot::core::cpu {

llvm::Type* stored_type(Builder& builder, DType dtype, int lanes = 1);
llvm::Type* arithmetic_type(Builder& builder, DType dtype, int lanes = 1);
llvm::Value* broadcast(Builder& builder, llvm::Value* value,
                       int lanes);  // of a scalar; vectors are returned unchanged
llvm::Value* constant_value(Builder& builder, DType dtype, double number, int64_t integer);
llvm::Value* lane_numbers(int lanes, llvm::Type* element);                  // 0, 1, 2 ...
llvm::Value* first_lanes(Builder& builder, llvm::Value* count, int lanes);  // mask: lane < count (i64)

// condition ? then : otherwise. Selects of floats are opaque to each other: LLVM 19 merges two that share an
// operand, and so miscompiles `c ? |x| : (|x| > 0 ? |x| : y)` as `c || x > 0 ? |x| : y`.
llvm::Value* choose(Builder& builder, llvm::Value* condition, llvm::Value* then, llvm::Value* otherwise);

// Raw bits of the stored dtype <-> arithmetic value, round to nearest even.
llvm::Value* widen(Builder& builder, DType stored, llvm::Value* raw);
llvm::Value* narrow(Builder& builder, DType stored, llvm::Value* value);

// `lanes` adjacent elements from `pointer` on, aligned to an element. Lanes outside of `mask` (null: none)
// are not accessed, and read as 0. Not for the four-bit dtypes.
llvm::Value* load_lanes(Builder& builder, DType stored, llvm::Value* pointer, int lanes,
                        llvm::Value* mask = nullptr);
// The same as f32, whatever is stored; without rounding except of integers of 32 bits and more.
llvm::Value* load_as_float(Builder& builder, DType stored, llvm::Value* pointer, int lanes);
void store_lanes(Builder& builder, DType stored, llvm::Value* value, llvm::Value* pointer,
                 llvm::Value* mask = nullptr);

// Every `stride`-th element from `pointer` on; accesses nothing past the last one. For small strides.
llvm::Value* load_strided_lanes(Builder& builder, DType stored, llvm::Value* pointer, int lanes, int stride);
// Whether the next function stores them faster than a scatter, which 16 bits and bytes lack.
bool has_strided_stores(const Builder& builder, DType stored, int64_t stride);
// Masked stores of whole registers, where the processor has them and the stride is small; otherwise one store
// for each lane.
void store_strided_lanes(Builder& builder, DType stored, llvm::Value* value, llvm::Value* pointer, int lanes,
                         int64_t stride);

// One element per lane, at the addresses in the vector `pointers`, all of which must be readable.
llvm::Value* gather_lanes(Builder& builder, DType stored, llvm::Value* pointers, int lanes);
void scatter_lanes(Builder& builder, DType stored, llvm::Value* value, llvm::Value* pointers,
                   llvm::Value* mask = nullptr);

llvm::Value* load_element(Builder& builder, DType stored, llvm::Value* pointer);
void store_element(Builder& builder, DType stored, llvm::Value* value, llvm::Value* pointer);

}  // namespace ingot::core::cpu
