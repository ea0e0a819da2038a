// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <unordered_map>

#include "ir/graph.h"

namespace ingot::core {

// Byte offset of the result inside operand 0 if the node moves no byte: its result's storage is a contiguous
// part of operand 0's storage, in the same order (layouts included). Such nodes need no step.
std::optional<Dim> alias_offset(const Node& node);

// Answers of alias_offset, each found once. Valid while nodes live and their types stay as they are.
class AliasOffsets {
 public:
  const std::optional<Dim>& of(const Node& node) {
    const auto known = known_.find(&node);
    return known != known_.end() ? known->second : known_.emplace(&node, alias_offset(node)).first->second;
  }
  // The value that `value` is a part of, through all views; itself if it is not a view.
  const Value* root(const Value* value) {
    while (value->producer != nullptr && of(*value->producer)) value = value->producer->operands[0];
    return value;
  }

 private:
  std::unordered_map<const Node*, std::optional<Dim>> known_;
};

}  // namespace ingot::core
