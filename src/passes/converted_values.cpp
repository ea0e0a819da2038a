// SPDX-License-Identifier: Apache-2.0
#include "passes/converted_values.h"

#include "ops/ops.h"
#include "ops/select.h"

namespace ingot::core {

Value* converted(Graph& graph, Value* value, DType dtype) {
  return value->type.dtype == dtype ? value : graph.call(ops::convert, {value}, ops::Convert{dtype});
}

Node* source_of(const Value* value) {
  Node* producer = value->producer;
  while (producer != nullptr && producer->op->traits.has(Trait::kView) && producer->operands.size() == 1)
    producer = producer->operands[0]->producer;
  return producer;
}

DType dtype_before_widening(const Value* value) {
  const Node* source = source_of(value);
  return source != nullptr && source->op == &ops::convert ? source->operand_type(0).dtype : value->type.dtype;
}

Value* narrowed(Graph& graph, Value* value, DType dtype) {
  if (dtype_before_widening(value) != dtype)
    return graph.call(ops::convert, {value}, ops::Convert{.dtype = dtype, .may_stay_wide = true});
  Node* producer = value->producer;
  if (producer->op == &ops::convert) return producer->operands[0];
  std::vector<Value*> operands = producer->operands;
  operands[0] = narrowed(graph, operands[0], dtype);
  return graph.call(*producer->op, std::move(operands), producer->values);
}

}  // namespace ingot::core
