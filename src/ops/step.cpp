// SPDX-License-Identifier: Apache-2.0
#include "ops/step.h"

#include <algorithm>

#include "ops/ops.h"

namespace ingot::core::ops {
namespace {

constexpr const Op* kSteps[] = {&atan2,     &ceil,  &floor, &floor_divide, &modulo,
                                &remainder, &round, &sign,  &truncate};
// NaN or infinite on one side of an edge.
constexpr const Op* kWithEdges[] = {
    &acos, &acosh, &asin, &atanh, &log, &log10, &log1p, &log2, &power, &reciprocal_square_root, &square_root};
constexpr const Op* kPassing[] = {&absolute, &clamp, &maximum,        &minimum,
                                  &negate,   &relu,  &reduce_maximum, &reduce_minimum};

bool is_one_of(std::span<const Op* const> list, const Op* op) {
  return std::ranges::find(list, op) != list.end();
}

}  // namespace

bool is_step(const Node& node) {
  const auto is_floating_value = [](const Value* value) {
    return value != nullptr && is_floating(value->type.dtype);
  };
  return is_one_of(kSteps, node.op) || is_one_of(kWithEdges, node.op) ||
         (std::ranges::any_of(node.operands, is_floating_value) &&
          !std::ranges::all_of(node.results, is_floating_value));
}

bool passes_elements(const Node& node) {
  return node.op->traits.has(Trait::kView) || node.op == &select || is_one_of(kPassing, node.op);
}

}  // namespace ingot::core::ops
