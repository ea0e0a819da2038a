// SPDX-License-Identifier: Apache-2.0
#include "backends/steps/fusion_rules.h"

#include <algorithm>

#include "loops/compose.h"
#include "loops/rewrite.h"
#include "ops/ops.h"

namespace ingot::core {

bool reads_data_dependent_indices(const Node& node) {
  return !node.op->lower(node).stages[0].bindings.empty();
}

namespace {

// The elements that a node stores: an in-place update does not store its whole target.
Dim stored_elements(const Node& node) {
  if (!node.op->traits.has(Trait::kInPlace)) return element_count(node.results[0]->type);
  return loops::parallel_extent(node.op->lower(node));
}

const Shape& result_shape(const Node& node) { return node.results[0]->type.shape; }

bool feeds(const Node& producer, const Node& consumer) {
  return std::ranges::any_of(producer.results, [&](const Value* result) {
    return std::ranges::find(consumer.operands, result) != consumer.operands.end();
  });
}

}  // namespace

bool reads_each_element_once(const Node& root, const Value* value) {
  const loops::Kernel kernel = root.op->lower(root);
  const auto present = [&](size_t position) { return root.operands[position] != nullptr; };
  int buffer = 0;
  for (size_t i = 0; root.operands[i] != value; ++i) buffer += present(i) ? 1 : 0;
  bool once = true;
  const auto see = [&](const loops::Expr& node) {
    if (node->kind != loops::ExprNode::Kind::kLoad || node->buffer != buffer) return;
    for (const Dim& dim : node->index) once &= dim.is_symbol() || dim.is_constant();
    for (const loops::Loop& loop : kernel.parallel) {
      const bool used = std::ranges::find(node->index, Dim::symbol(loop.variable)) != node->index.end();
      once &= used || loop.extent == Dim(1);
    }
  };
  for (const loops::Stage& stage : kernel.stages) loops::visit(stage.value, see);
  return once;
}

FusionAnswer may_take_consumer(const Node& root, const Node& consumer, const ReadyRule& is_ready) {
  if (!consumer.op->traits.has(Trait::kElementwise)) return {false, "it is not elementwise"};
  if (result_shape(consumer) != result_shape(root)) return {false, "it has another shape"};
  if (consumer.results[0]->type.layout != root.results[0]->type.layout)
    return {false, "it has another layout"};
  if (root.op->traits.has(Trait::kContraction) && !is_ready(root))
    return {false, "no kernel template computes the contraction as it stands"};
  return {};
}

FusionAnswer may_take_producer(const Node& root, const Node& producer, const ReadyRule& is_ready) {
  if (reads_data_dependent_indices(producer)) {
    const bool fits = root.op->traits.has(Trait::kElementwise) && !feeds(producer, root);
    return {fits, "its indices depend on data"};
  }
  if (root.op->traits.has(Trait::kContraction)) {
    if (feeds(producer, root)) return {false, "it feeds the contraction itself"};
    return {is_ready(root), "no kernel template computes the contraction as it stands"};
  }
  if (producer.operands.empty()) return {};  // constants and iotas are in the code: nothing is loaded
  if (root.op->traits.has(Trait::kReduction)) {
    const bool fits = !feeds(producer, root) || reads_each_element_once(root, producer.results[0]);
    return {fits, "the reduction reads its elements more than once"};
  }
  // Fusing a broadcast recomputes the producer per reader, so only free producers are fused.
  const bool cheap = producer.op->traits.has(Trait::kView) || !is_floating(producer.results[0]->type.dtype);
  const Dim stored = stored_elements(root);
  const auto joins = [&](const Node* user) {
    return user->op == &ops::concat && element_count(user->results[0]->type) == stored;
  };
  const bool once = element_count(producer.results[0]->type) == stored ||
                    std::ranges::all_of(producer.results[0]->users, joins);
  const bool fits = cheap || once;
  return {fits, "it would be computed again for each element that it is broadcast to"};
}

}  // namespace ingot::core
