// SPDX-License-Identifier: Apache-2.0
#include "ops/alias.h"

#include <algorithm>
#include <map>

#include "loops/index_facts.h"
#include "loops/kernel.h"

namespace ingot::core {

std::optional<Dim> alias_offset(const Node& node) {
  if (!node.op->traits.has(Trait::kView) || node.operands.size() != 1 || node.results.size() != 1)
    return std::nullopt;
  const TensorType& from = node.operand_type(0);
  const TensorType& to = node.results[0]->type;
  if (from.dtype != to.dtype) return std::nullopt;
  if (node.op->traits.has(Trait::kKeepsOrder)) {
    return from.layout.is_row_major() && to.layout.is_row_major() ? std::optional<Dim>(0) : std::nullopt;
  }
  const loops::Kernel kernel = node.op->lower(node);
  if (kernel.stages.size() != 1 || kernel.stages[0].value->kind != loops::ExprNode::Kind::kLoad)
    return std::nullopt;
  const loops::Stage& stage = kernel.stages[0];
  if (!stage.loops.empty() || !stage.bindings.empty()) return std::nullopt;
  // Padding is read together with the elements, so it must exist.
  const Dim room = storage_elements(to.layout, to.shape);
  if (room != product(to.shape) && room != storage_elements(from.layout, from.shape)) return std::nullopt;
  loops::IndexFacts facts({});
  for (const loops::Loop& loop : kernel.parallel) facts.add(loop);
  const Dim source = facts.simplify(storage_offset(from.layout, from.shape, stage.value->index));
  const Dim target = facts.simplify(storage_offset(to.layout, to.shape, stage.store->index));
  std::map<std::string, Dim> single;  // loops with one iteration
  for (const loops::Loop& loop : kernel.parallel) {
    if (loop.extent == Dim(1)) single.emplace(loop.variable, 0);
  }
  const Dim difference = substitute(source - target, single);
  const auto symbols = difference.symbols();
  for (const loops::Loop& loop : kernel.parallel) {
    if (std::ranges::find(symbols, loop.variable) != symbols.end()) return std::nullopt;
  }
  // Sub-byte elements may start inside a byte: leave those to a copy.
  if (bit_width(to.dtype) % 8 != 0) return std::nullopt;
  return difference * Dim(bit_width(to.dtype) / 8);
}

}  // namespace ingot::core
