// SPDX-License-Identifier: Apache-2.0
#include "ir/in_place.h"

#include <algorithm>

namespace ingot::core {

std::optional<InPlaceUpdate> in_place_update(const Value& result) {
  const Node* node = result.producer;
  if (node == nullptr) return std::nullopt;
  if (node->op->traits.has(Trait::kFused)) {
    const auto inner = in_place_update(*node->graphs[0]->outputs[result.index]);
    if (!inner || inner->operand->producer != nullptr) return std::nullopt;
    return InPlaceUpdate{node->operands[inner->operand->index], inner->operand->users.size() > 1};
  }
  if (!node->op->traits.has(Trait::kInPlace) || result.index != 0) return std::nullopt;
  return InPlaceUpdate{node->operands[0], std::ranges::count(node->operands, node->operands[0]) > 1};
}

}  // namespace ingot::core
