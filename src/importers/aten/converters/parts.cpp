// SPDX-License-Identifier: Apache-2.0
#include "importers/aten/converters/parts.h"

#include <optional>

#include "ops/axis.h"
#include "ops/concat.h"

namespace ingot::core::aten {
namespace {

bool is_joined(const core::Value* pair) {
  const core::Node* node = pair->producer;
  if (node == nullptr || node->op != &ops::concat || node->operands.size() != 2) return false;
  const auto axis = static_cast<int64_t>(pair->type.rank()) - 1;
  return node->attributes<ops::Axis>().axis == axis && node->operands[0]->type.shape.back() == Dim(1);
}

// The tensor whose elements the operand of a join holds.
core::Value* before_join(Call& call, core::Value* half) {
  Shape shape = half->type.shape;
  shape.pop_back();
  const core::Node* made = half->producer;
  if (made != nullptr && made->op == &ops::reshape && made->operands[0]->type.shape == shape)
    return made->operands[0];
  return reshaped(call, half, std::move(shape));
}

core::Value* part(Call& call, core::Value* pair, size_t index) {
  if (is_joined(pair)) return before_join(call, pair->producer->operands[index]);
  return selected(call, pair, pair->type.rank() - 1, static_cast<int64_t>(index));
}

}  // namespace

Parts parts_of(Call& call, core::Value* pair) {
  const Shape& shape = pair->type.shape;  // of what a file recorded as complex
  call.require(!shape.empty() && shape.back() == Dim(2), "a complex tensor that is not made of pairs");
  return {Term(call, part(call, pair, 0)), Term(call, part(call, pair, 1))};
}

core::Value* selected_or_part(Call& call, core::Value* value, size_t axis, const Dim& index) {
  const bool is_pair = axis + 1 == value->type.rank() && value->type.shape.back() == Dim(2);
  const std::optional<int64_t> known = index.constant();
  return is_pair && (known == 0 || known == 1) ? part(call, value, static_cast<size_t>(*known))
                                               : selected(call, value, axis, index);
}

core::Value* joined(Call& call, core::Value* re, core::Value* im) {
  const size_t rank = re->type.rank();
  return concatenated(call, {unsqueezed(call, re, rank), unsqueezed(call, im, rank)}, rank);
}

}  // namespace ingot::core::aten
