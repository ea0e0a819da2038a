// SPDX-License-Identifier: Apache-2.0
#include "backends/steps/loop_steps.h"

#include <algorithm>

#include "loops/kernel.h"

namespace ingot::core {
namespace {

double points_of(const std::vector<loops::Loop>& loops, const SymbolValues& sizes) {
  double points = 1;
  for (const loops::Loop& loop : loops) points *= static_cast<double>(evaluate(loop.extent, sizes));
  return points;
}

double largest_operand(const Node& node, const SymbolValues& sizes) {
  double most = 0;
  for (const Value* operand : node.operands) {
    if (operand != nullptr)
      most = std::max(most, static_cast<double>(evaluate(element_count(operand->type), sizes)));
  }
  return most;
}

}  // namespace

double loop_steps(const Node& node, const SymbolValues& sizes) {
  if (node.op->lower == nullptr) return largest_operand(node, sizes);
  const loops::Kernel kernel = node.op->lower(node);
  double steps = 0;
  for (const loops::Stage& stage : kernel.stages)
    steps += points_of(stage.loops, sizes) * points_of(stage.reduce, sizes);
  return points_of(kernel.parallel, sizes) * steps;
}

double moved_bytes(const Node& node, const SymbolValues& sizes) {
  double bytes = 0;
  for (const auto* values : {&node.operands, &node.results}) {
    for (const Value* value : *values) {
      if (value == nullptr) continue;
      const auto elements = static_cast<double>(evaluate(element_count(value->type), sizes));
      bytes += elements * bit_width(value->type.dtype) / 8;
    }
  }
  return bytes;
}

}  // namespace ingot::core
