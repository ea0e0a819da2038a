// SPDX-License-Identifier: Apache-2.0
#include "ops/batch_norm.h"
#include "ops/generate.h"
#include "ops/infer.h"
#include "ops/ops.h"
#include "ops/reshape.h"
#include "ops/samples.h"
#include "ops/select.h"

namespace ingot::core::ops {
namespace {

constexpr Operand kBatchNormOperands[] = {{"x", DTypeSet::kFloating},
                                          {"mean", DTypeSet::kFloating},
                                          {"variance", DTypeSet::kFloating},
                                          {.name = "weight", .dtypes = DTypeSet::kFloating, .optional = true},
                                          {.name = "bias", .dtypes = DTypeSet::kFloating, .optional = true}};

Types infer_batch_norm(const Node& node) {
  const Shape& shape = node.operand_type(0).shape;
  require(shape.size() >= 2, node, "x must be [N, C, *]");
  for (size_t i = 1; i < node.operands.size(); ++i) {
    if (node.has_operand(i)) require_shape(node, i, {shape[1]});
  }
  return infer_same(node);
}

// x * scale + shift, where scale and shift depend on weights only and are computed once.
std::vector<Value*> decompose_batch_norm(Graph& graph, const Node& node) {
  const TensorType& x = node.operand_type(0);
  const DType dtype = x.dtype == DType::kF64 ? DType::kF64 : DType::kF32;
  const auto as_dtype = [&](Value* value, DType to) {
    return value->type.dtype == to ? value : graph.call(convert, {value}, Convert{to});
  };
  const auto channel = [&](size_t operand) { return as_dtype(node.operands[operand], dtype); };
  Shape broadcast(x.rank() - 1, 1);
  broadcast[0] = x.shape[1];
  const auto spread = [&](Value* value) { return graph.call(reshape, {value}, NewShape{broadcast}); };

  Value* epsilon = graph.call(full, {}, Full{node.attributes<BatchNorm>().epsilon, 0, dtype, {}});
  Value* scale = graph.call(reciprocal_square_root, {graph.call(add, {channel(2), epsilon})});
  if (node.has_operand(3)) scale = graph.call(multiply, {scale, channel(3)});
  Value* center = graph.call(multiply, {channel(1), scale});
  Value* shift =
      node.has_operand(4) ? graph.call(subtract, {channel(4), center}) : graph.call(negate, {center});
  Value* scaled = graph.call(multiply, {as_dtype(node.operands[0], dtype), spread(scale)});
  return {as_dtype(graph.call(add, {scaled, spread(shift)}), x.dtype)};
}

Samples batch_norm_samples() {
  return {sample({f32({batch(), 3, 4, 4}), f32({3}), f32({3}, 0.1, 2), f32({3}), f32({3})}, BatchNorm{}),
          sample({f32({2, 3}), f32({3}), f32({3}, 0.1, 2)}, BatchNorm{1e-3})};
}

}  // namespace

constinit const Op batch_norm = {.name = "batch_norm",
                                 .summary = "x [N, C, *] normalized with given statistics of its channels",
                                 .operands = kBatchNormOperands,
                                 .attributes = attribute_schema<BatchNorm>(),
                                 .infer = infer_batch_norm,
                                 .decompose = decompose_batch_norm,
                                 .samples = batch_norm_samples};

}  // namespace ingot::core::ops
