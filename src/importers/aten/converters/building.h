// SPDX-License-Identifier: Apache-2.0
// Short notation for the nodes that converters build; each returns its operand if there is nothing to do.
#pragma once

#include <vector>

#include "importers/aten/converters/call.h"
#include "ops/ops.h"

namespace ingot::core::aten {

template <typename... Attributes>
core::Value* emit(Call& call, const Op& op, std::vector<core::Value*> operands,
                  const Attributes&... attributes) {
  return call.graph().call(op, std::move(operands), attributes...);
}

std::vector<int64_t> all_axes(size_t rank);                             // 0, 1, ...
std::vector<int64_t> inverse_order(const std::vector<int64_t>& order);  // of a permutation
const Dim& extent(Call& call, const core::Value* value, size_t axis);   // rejects axes out of range
// 0, step, 2 step ...: `extent` numbers.
core::Value* counting(Call& call, const Dim& extent, const Dim& step = 1, DType dtype = DType::kI64);
core::Value* reshaped(Call& call, core::Value* value, Shape shape);  // rejects other numbers of elements
core::Value* expanded(Call& call, core::Value* value, Shape shape);  // rejects shapes that do not broadcast
core::Value* transposed(Call& call, core::Value* value, std::vector<int64_t> order);
core::Value* swapped(Call& call, core::Value* value, size_t a, size_t b);  // two dims
core::Value* sliced(Call& call, core::Value* value, size_t axis, const Dim& start, const Dim& end,
                    int64_t step = 1);
core::Value* selected(Call& call, core::Value* value, size_t axis,
                      const Dim& index);  // one index; removes the axis
core::Value* unsqueezed(Call& call, core::Value* value, size_t axis);
core::Value* without_axes(Call& call, core::Value* value,
                          const std::vector<int64_t>& axes);  // dims of size 1
core::Value* concatenated(Call& call, std::vector<core::Value*> values, size_t axis);
// For each element of a bool mask, in row-major order, the rank of the last true element up to it.
core::Value* rank_among_true(Call& call, core::Value* mask);
core::Value* filled(Call& call, Shape shape, double value, DType dtype);

// How often a sorted line of that size is halved until the place of a value is known, for ops::search_sorted.
int64_t halvings(const core::Graph& graph, const Dim& size);

// Bounds of a torch slice or index: negative ones count from the end.
Dim from_end(const Dim& index, const Dim& size);
// Whether a symbol in it is an integer that calls choose, or find in a tensor, and that may be negative.
bool is_of_any_sign(const Dim& integer, const SymbolTable& symbols);
// min(a, b), without a minimum if the symbols' ranges decide.
Dim smaller(const Dim& a, const Dim& b, const SymbolTable& symbols);

}  // namespace ingot::core::aten
