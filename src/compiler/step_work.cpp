// SPDX-License-Identifier: Apache-2.0
#include "compiler/step_work.h"

#include <map>

#include "loops/count_operations.h"

namespace ingot::core {
namespace {

using Counts = std::map<const Value*, Dim>;  // elements

// A gather does not read its whole table, and an in-place update does not write its whole target.
Dim bytes_of(const Value* value, const Dim& elements) {
  return minimum(storage_bytes(value->type),
                 ceil_divide(elements * Dim(bit_width(value->type.dtype)), Dim(8)));
}

// Sums up what one node of a step computes, loads and stores.
void add_member(const Node& node, StepWork& work, Counts& loads, Counts& stores) {
  if (node.op->lower == nullptr) {  // a routine
    for (const Value* operand : node.operands) {
      if (operand != nullptr) loads[operand] = element_count(operand->type);
    }
    for (const Value* result : node.results) stores[result] = element_count(result->type);
    return;
  }
  const loops::Kernel kernel = node.op->lower(node);
  work.operations = work.operations + loops::count_operations(kernel);
  int buffer = 0;
  for (const Value* operand : node.operands) {
    if (operand != nullptr) loads[operand] = loads[operand] + loops::count_loads(kernel, buffer++);
  }
  for (const Value* result : node.results) stores[result] = loops::count_stores(kernel, buffer++);
}

template <typename Values>
Dim sum_bytes(const Values& values, const Counts& elements) {
  Dim total = 0;
  for (const Value* value : values) {
    if (const auto found = elements.find(value); found != elements.end())
      total = total + bytes_of(value, found->second);
  }
  return total;
}

}  // namespace

StepWork work_of(const Node& node) {
  StepWork work;
  if (node.op->traits.has(Trait::kControlFlow)) return work;  // how often its graphs run is not known
  Counts loads, stores;
  if (node.graphs.empty()) {
    add_member(node, work, loads, stores);
    work.bytes = sum_bytes(node.results, stores);
    for (const auto& [operand, elements] : loads) work.bytes = work.bytes + bytes_of(operand, elements);
  } else {
    const Graph& region = *node.graphs[0];
    for (const auto& member : region.nodes()) add_member(*member, work, loads, stores);
    work.bytes = sum_bytes(region.inputs(), loads) + sum_bytes(region.outputs, stores);
  }
  return work;
}

}  // namespace ingot::core
