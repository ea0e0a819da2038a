// SPDX-License-Identifier: Apache-2.0
#include "passes/norm_folding.h"

#include <algorithm>

#include "ops/normalization.h"
#include "ops/ops.h"
#include "ops/reduce.h"
#include "passes/converted_values.h"

namespace ingot::core {
namespace {

constexpr size_t kWeightOfLinear = 1, kBiasOfLinear = 2;

Value* as_f32(Graph& graph, Value* value) { return converted(graph, value, DType::kF32); }

}  // namespace

bool is_row_norm(const Node& node) {
  return (node.op == &ops::layer_norm || node.op == &ops::rms_norm) &&
         node.attributes<ops::Normalization>().axes == 1;
}

bool are_operands_invariant(const Node& node, const Invariant& invariant) {
  return std::all_of(node.operands.begin() + 1, node.operands.end(), [&](const Value* value) {
    return value == nullptr ||
           (invariant.contains(value->producer) && value->type.dtype == node.results[0]->type.dtype);
  });
}

// linear(norm(x) * scale + shift) + bias = normalized(x) (weight * scale)^T + (weight shift + bias).
Value* linear_of_norm_input(Graph& graph, const Node& norm, const Node& linear, Value* mean, Value* scale) {
  const DType dtype = linear.results[0]->type.dtype;
  Value* weight = linear.operands[kWeightOfLinear];
  Value* bias = linear.has_operand(kBiasOfLinear) ? linear.operands[kBiasOfLinear] : nullptr;
  if (norm.has_operand(kNormShift)) {
    Value* shift = graph.call(ops::linear, {as_f32(graph, norm.operands[kNormShift]), as_f32(graph, weight)});
    if (bias != nullptr) shift = graph.call(ops::add, {shift, as_f32(graph, bias)});
    bias = converted(graph, shift, dtype);
  }
  if (norm.has_operand(kNormScale)) weight = graph.call(ops::multiply, {weight, norm.operands[kNormScale]});
  Value* sums = nullptr;  // of the weight as it is rounded
  if (norm.op == &ops::layer_norm)
    sums = graph.call(ops::sum, {as_f32(graph, weight)}, ops::Reduce{{1}, false});
  std::vector<Value*> operands = {norm.operands[kNormInput], weight, bias, sums};
  if (scale != nullptr) operands.insert(operands.end(), {mean, scale});
  return graph.call(ops::normalized_linear, operands,
                    ops::NormalizedLinear{norm.attributes<ops::Normalization>().epsilon});
}

}  // namespace ingot::core
