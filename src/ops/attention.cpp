// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/attention.h"
#include "ops/infer.h"
#include "ops/lowering.h"
#include "ops/ops.h"
#include "ops/samples.h"

namespace ingot::core::ops {
namespace {

constexpr Operand kAttentionOperands[] = {{"query", DTypeSet::kFloating},
                                          {"key", DTypeSet::kFloating},
                                          {"value", DTypeSet::kFloating},
                                          {.name = "mask", .dtypes = DTypeSet::kAny, .optional = true}};

constexpr Operand kCachedOperands[] = {
    {"query", DTypeSet::kFloating},     {"key", DTypeSet::kFloating},
    {"value", DTypeSet::kFloating},     {.name = "mask", .dtypes = DTypeSet::kAny, .optional = true},
    {"positions", DTypeSet::kIndex},    {"new_keys", DTypeSet::kFloating},
    {"new_values", DTypeSet::kFloating}};

Shape batch_dims(const Shape& shape) { return Shape(shape.begin(), shape.end() - 2); }

// Batch dims of keys and values as the queries see them.
Shape key_batch(const Node& node, const Attention& attention, size_t operand) {
  Shape shape = batch_dims(node.operand_type(operand).shape);
  if (attention.grouped && !shape.empty())
    shape.back() = node.operand_type(0).shape[node.operand_type(0).rank() - 3];
  return shape;
}

Types infer_attention(const Node& node) {
  const auto attention = node.attributes<Attention>();
  const TensorType &query = node.operand_type(0), &key = node.operand_type(1), &value = node.operand_type(2);
  require(query.rank() >= 2 && key.rank() >= 2 && value.rank() >= 2, node, "operands need at least two dims");
  require(query.dtype == key.dtype && query.dtype == value.dtype, node,
          "query, key and value must have the same dtype");
  require(query.shape.back() == key.shape.back(), node, "query and key must have the same embedding size");
  require(key.shape[key.rank() - 2] == value.shape[value.rank() - 2], node,
          "there must be one value per key");
  require(attention.scale != 0 || query.shape.back().is_constant(), node,
          "the scale must be given because the embedding size is symbolic");
  if (attention.grouped) {
    require(query.rank() >= 3 && key.rank() == query.rank() && value.rank() == query.rank(), node,
            "grouped heads require a head dim");
    const auto heads = query.shape[query.rank() - 3].constant(),
               groups = key.shape[key.rank() - 3].constant();
    require(heads && groups && *groups > 0 && *heads % *groups == 0, node,
            "query heads must be a multiple of key heads");
  }
  Shape shape = broadcast_shapes(node, batch_dims(query.shape), key_batch(node, attention, 1));
  shape = broadcast_shapes(node, shape, key_batch(node, attention, 2));
  shape.push_back(query.shape[query.rank() - 2]);
  if (node.has_operand(3)) {
    Shape scores = shape;
    scores.push_back(key.shape[key.rank() - 2]);
    if (!broadcasts_to(node.operand_type(3).shape, scores))
      fail(node,
           "mask " + to_string(node.operand_type(3).shape) + " does not broadcast to " + to_string(scores));
  }
  shape.push_back(value.shape.back());
  return {{query.dtype, std::move(shape), {}}};
}

// The batch part of an index into `operand`, for a batch index of the result.
Index batch_place(const Node& node, const Attention& attention, size_t operand, const Index& batch) {
  const Shape own = batch_dims(node.operand_type(operand).shape);
  Index place;
  for (size_t i = 0; i < own.size(); ++i) {
    const Dim& at = batch[batch.size() - own.size() + i];
    place.push_back(own[i] == Dim(1) ? Dim(0) : at);
  }
  if (attention.grouped && operand > 0) {
    const Dim group = core::floor_divide(node.operand_type(0).shape[own.size() - 1], own.back());
    place.back() = core::floor_divide(batch.back(), group);
  }
  return place;
}

Index with(Index place, const Dim& row, const Dim& column) {
  place.push_back(row);
  place.push_back(column);
  return place;
}

Types infer_cached_attention(const Node& node) {
  Types types = infer_attention(node);
  require_rank(node, kPositions, 1);
  for (const size_t operand : {kNewKeys, kNewValues}) {
    const TensorType& cache = node.operand_type(operand - kNewKeys + kKey);
    require(node.operand_type(operand).dtype == cache.dtype, node, "new rows have the dtype of the cache");
    Shape rows = cache.shape;
    rows[rows.size() - 2] = node.operand_type(kPositions).shape[0];
    require_shape(node, operand, rows);
  }
  require(node.operand_type(kPositions).shape[0].is_constant(), node, "the number of new rows is constant");
  return types;
}

// An element of the cache `operand`: of its new row, if `row` is one; of several for one place, the last.
Expr newest(const KernelBuilder& kernel, const Node& node, size_t operand, const Index& place, const Dim& row,
            const Dim& column) {
  Expr element = kernel.load(operand, with(place, row, column));
  if (node.op != &cached_attention) return element;
  const size_t fresh = operand - kKey + kNewKeys;
  for (int64_t i = 0; i < *node.operand_type(kPositions).shape[0].constant(); ++i) {
    const Expr position = loops::convert(DType::kI64, kernel.load(kPositions, {Dim(i)}));
    element = loops::select(equal_to(position, loops::index_value(row)),
                            kernel.load(fresh, with(place, Dim(i), column)), element);
  }
  return element;
}

// A row without any allowed key is all zeros, as in torch's safe softmax, or NaN.
loops::Kernel lower_attention(const Node& node) {
  const auto attention = node.attributes<Attention>();
  const Shape &query = node.operand_type(0).shape, &key = node.operand_type(1).shape;
  const Shape& result = node.results[0]->type.shape;
  const auto width = static_cast<double>(query.back().constant().value_or(1));
  const double scale = attention.scale != 0 ? attention.scale : 1 / std::sqrt(width);
  KernelBuilder kernel(node);
  const Index outer = kernel.parallel(Shape(result.begin(), result.end() - 1));
  const Index batch(outer.begin(), outer.end() - 1);
  const auto place = [&](size_t operand) { return batch_place(node, attention, operand, batch); };
  const Dim keys = key[key.size() - 2], step = outer.back();

  const StageLoops scored = kernel.loops({keys}), inner = kernel.loops({query.back()});
  const Expr product = kernel.load(0, with(place(0), step, inner.index[0])) *
                       newest(kernel, node, kKey, place(kKey), scored.index[0], inner.index[0]);
  const int products = kernel.row("products", scored, product, inner, loops::Combine::kAdd);

  const StageLoops masked = kernel.loops({keys});
  const Dim at = masked.index[0];
  Expr score = kernel.local(products, {at}) * scale;
  const Expr none = -infinity(score->dtype);
  const auto hide = [&](const Expr& shown) { return score + loops::select(shown, number(score, 0), none); };
  if (attention.causal) {
    const Expr shown = at_most(loops::index_value(at), loops::index_value(step));
    score = attention.causal_by_sum ? hide(shown) : loops::select(shown, score, none);
  }
  if (kernel.has(kMask)) {
    Shape scores(result.begin(), result.end() - 1);
    scores.push_back(keys);
    const Expr mask = kernel.load_broadcast(kMask, scores, with(batch, step, at));
    score = mask->dtype == DType::kBool ? hide(mask) : score + loops::convert(score->dtype, mask);
  }
  const int row = kernel.row("scores", masked, score);

  const StageLoops over = kernel.loops({keys}), raised = kernel.loops({keys}), added = kernel.loops({keys});
  const Expr largest =
      kernel.reduce("largest", loops::Combine::kMaximum, over, kernel.local(row, over.index));
  const Expr power = compute(functions::exp, kernel.local(row, raised.index) - largest);
  const bool safe = !attention.empty_is_nan;
  const int powers = kernel.row(
      "powers", raised, safe ? loops::select(equal_to(largest, none), number(power, 0), power) : power);
  const Expr total = kernel.reduce("total", loops::Combine::kAdd, added, kernel.local(powers, added.index));
  const Expr divisor = kernel.scalar(
      "divisor", safe ? loops::select(equal_to(total, number(total, 0)), number(total, 1), total) : total);

  const StageLoops out = kernel.loops({result.back()}), summed = kernel.loops({keys});
  const Expr value = newest(kernel, node, kValue, place(kValue), summed.index[0], out.index[0]);
  const int sums =
      kernel.row("sums", out, kernel.local(powers, summed.index) * value, summed, loops::Combine::kAdd);
  const StageLoops stored = kernel.loops({result.back()});
  kernel.store(with(batch, step, stored.index[0]), kernel.local(sums, stored.index) / divisor, stored);
  return kernel.finish();
}

Samples attention_samples() {
  return {
      sample({f32({batch(), 2, 3, 4}), f32({batch(), 2, length(), 4}), f32({batch(), 2, length(), 5})},
             Attention{}),
      sample({f32({1, 2, 5, 4}), f32({1, 2, 5, 4}), f32({1, 2, 5, 4})}, Attention{0.3, true, false}),
      sample({f32({2, 6, 4}), f32({2, 6, 4}), f32({2, 6, 4})},
             Attention{.causal = true, .causal_by_sum = true}),
      sample({f32({2, 4, 3, 4}), f32({2, 2, 6, 4}), f32({2, 2, 6, 4}), boolean_tensor({2, 1, 3, 6})},
             Attention{0, false, true}),
      sample({f32({2, 8, 4}), f32({2, 3, 4}), f32({2, 3, 4}), f32({8, 3})}, Attention{.empty_is_nan = true}),
      sample({f32({2, 2, 4}), f32({2, 3, 4}), f32({2, 3, 4}), f32({2, 3})}, Attention{.empty_is_nan = true}),
      sample({f32({3, 4}), f32({5, 4}), f32({5, 2}), f32({3, 5})}, Attention{})};
}

Samples cached_attention_samples() {
  return {sample({f32({1, 4, 1, 16}), f32({1, 2, 6, 16}), f32({1, 2, 6, 16}), boolean_tensor({1, 6}),
                  i64({1}, 0, 5), f32({1, 2, 1, 16}), f32({1, 2, 1, 16})},
                 Attention{.grouped = true}),
          sample({f32({batch(), 2, 3, 16}), f32({batch(), 2, 5, 16}), f32({batch(), 2, 5, 32}), f32({3, 5}),
                  i64({2}, 0, 5), f32({batch(), 2, 2, 16}), f32({batch(), 2, 2, 32})},
                 Attention{.scale = 0.3})};
}

}  // namespace

constinit const Op attention = {.name = "attention",
                                .summary = "softmax(query key^T * scale + mask) value, arXiv 1706.03762",
                                .operands = kAttentionOperands,
                                .attributes = attribute_schema<Attention>(),
                                .traits = Trait::kContraction | Trait::kReduction,
                                .infer = infer_attention,
                                .lower = lower_attention,
                                .samples = attention_samples};

constinit const Op cached_attention = {
    .name = "cached_attention",
    .summary =
        "attention to keys and values in which rows are replaced: index_copy of new_keys and new_values",
    .operands = kCachedOperands,
    .attributes = attribute_schema<Attention>(),
    .traits = Trait::kContraction | Trait::kReduction,
    .infer = infer_cached_attention,
    .lower = lower_attention,
    .samples = cached_attention_samples};

bool is_attention(const Op& op) { return &op == &attention || &op == &cached_attention; }

}  // namespace ingot::core::ops
