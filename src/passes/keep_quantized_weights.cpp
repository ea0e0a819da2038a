// SPDX-License-Identifier: Apache-2.0
// With a weight w = (q - z) s: if s has an element per column of the result, x w^T = (x q^T) s; otherwise the
// product takes the scales and zero points of the blocks of its depth.
#include <numeric>

#include "ops/ops.h"
#include "ops/reshape.h"
#include "ops/scaled_linear.h"
#include "ops/select.h"
#include "ops/slice.h"
#include "passes/converted_values.h"
#include "passes/hoist.h"
#include "passes/integer_constant.h"
#include "passes/replace_all_uses.h"
#include "passes/stored_weight.h"
#include "passes/target_passes.h"

namespace ingot::core {
namespace {

constexpr size_t kProductWeight = 1, kProductBias = 2;
constexpr int64_t kSignedOffset = 8;
// Sums of one scale are added up in one register: no longer than this, so that rounding errors do not grow.
constexpr int64_t kLongestBlock = 128;

bool is_in(const StoredWeight& weight, double low, double high) {
  return weight.range && weight.range->first >= low && weight.range->second <= high;
}

class KeepQuantizedWeights {
 public:
  KeepQuantizedWeights(Graph graph, const StoredWeightRule& rule, Rewrites& rewrites)
      : graph_(std::move(graph)), rule_(rule), rewrites_(rewrites), invariant_(invariant_nodes(graph_)) {}

  Graph run() {
    for (Node* node : graph_.node_list()) {
      const bool is_product = node->op == &ops::linear || node->op == &ops::matmul;
      if (!is_product || !invariant_.contains(node->operands[kProductWeight]->producer) ||
          !is_floating(node->operand_type(0).dtype) || node->operand_type(0).dtype == DType::kF64)
        continue;
      visit(node);
    }
    graph_.erase_dead_nodes();
    return std::move(graph_);
  }

 private:
  void visit(Node* node) {
    const Graph::InsertBefore scope(graph_, node);
    const auto weight =
        stored_weight(graph_, node->operands[kProductWeight], /*transposed=*/node->op == &ops::matmul);
    if (!weight) return;
    const StoredWeightForm form = form_of(*weight);
    if (!rule_(*node, form) || !rewrites_.allow(*node)) return;
    Value* x = converted(graph_, node->operands[0], DType::kF32);
    Value* product = form.block == 0 ? scaled_after(x, *weight) : scaled_within(x, *weight, form);
    if (node->has_operand(kProductBias))
      product =
          graph_.call(ops::add, {product, converted(graph_, node->operands[kProductBias], DType::kF32)});
    const DType own = node->results[0]->type.dtype;
    if (own != DType::kF32)
      product = graph_.call(ops::convert, {product}, ops::Convert{.dtype = own, .may_stay_wide = true});
    replace_all_uses(graph_, node->results[0], product);
  }

  static StoredWeightForm form_of(const StoredWeight& weight) {
    const TensorType& numbers = weight.numbers->type;
    const int64_t depth = *numbers.shape[1].constant();
    StoredWeightForm form{numbers.dtype};
    form.is_packed = is_integer(numbers.dtype) && depth % 2 == 0 &&
                     (is_in(weight, -kSignedOffset, kSignedOffset - 1) || is_in(weight, 0, 15));
    form.has_zero_points = weight.zero_point != nullptr;
    int64_t blocks = 1;
    for (const Value* value : {weight.scale, weight.zero_point}) {
      if (value != nullptr) blocks = std::lcm(blocks, *value->type.shape[1].constant());
    }
    if (blocks == 1 && !form.is_packed && !form.has_zero_points) return form;
    form.block = blocks == 1 ? std::gcd(depth, kLongestBlock) : depth / blocks;
    return form;
  }

  Value* scaled_after(Value* x, const StoredWeight& weight) {
    Value* product = graph_.call(ops::linear, {x, weight.numbers});
    const Dim columns = weight.scale->type.shape[0];
    Value* scale = converted(graph_, weight.scale, DType::kF32);
    const Shape shape = columns == Dim(1) ? Shape{} : Shape{columns};
    return graph_.call(ops::multiply, {product, graph_.call(ops::reshape, {scale}, ops::NewShape{shape})});
  }

  Value* scaled_within(Value* x, const StoredWeight& weight, const StoredWeightForm& form) {
    const Shape& shape = weight.numbers->type.shape;
    const Dim blocks = *shape[1].constant() / form.block;
    std::vector<Value*> operands{x, form.is_packed ? packed(weight) : weight.numbers,
                                 repeated(weight.scale, shape[0], blocks)};
    if (form.has_zero_points) operands.push_back(repeated(weight.zero_point, shape[0], blocks));
    const bool is_shifted = form.is_packed && !is_in(weight, 0, 15);
    return graph_.call(ops::scaled_linear, std::move(operands),
                       ops::ScaledLinear{form.is_packed, is_shifted ? kSignedOffset : 0});
  }

  // [N or 1, G] as [N, blocks], where G divides the blocks.
  Value* repeated(Value* value, const Dim& rows, const Dim& blocks) {
    const Dim own = value->type.shape[1];
    if (value->type.shape == Shape{rows, blocks}) return value;
    const Dim times = *blocks.constant() / *own.constant();
    Value* wide = graph_.call(ops::reshape, {value}, ops::NewShape{{value->type.shape[0], own, 1}});
    wide = graph_.call(ops::expand, {wide}, ops::NewShape{{rows, own, times}});
    return graph_.call(ops::reshape, {wide}, ops::NewShape{{rows, blocks}});
  }

  // Two elements in a byte.
  Value* packed(const StoredWeight& weight) {
    const Shape& shape = weight.numbers->type.shape;
    const Dim half = *shape[1].constant() / 2;
    Value* wide = converted(graph_, weight.numbers, DType::kI32);
    if (!is_in(weight, 0, 15)) wide = graph_.call(ops::add, {wide, integer_constant(graph_, kSignedOffset)});
    Value* pairs = graph_.call(ops::reshape, {wide}, ops::NewShape{{shape[0], half, 2}});
    Value* low = graph_.call(ops::slice, {pairs}, ops::Slice{.axis = 2, .start = 0, .end = 1});
    Value* high = graph_.call(ops::slice, {pairs}, ops::Slice{.axis = 2, .start = 1, .end = 2});
    Value* bytes =
        graph_.call(ops::add, {low, graph_.call(ops::multiply, {high, integer_constant(graph_, 16)})});
    return converted(graph_, graph_.call(ops::reshape, {bytes}, ops::NewShape{{shape[0], half}}), DType::kU8);
  }

  Graph graph_;
  const StoredWeightRule& rule_;
  Rewrites& rewrites_;
  std::set<const Node*> invariant_;
};

}  // namespace

Graph keep_quantized_weights(Graph graph, const StoredWeightRule& rule, Rewrites& rewrites) {
  return KeepQuantizedWeights(std::move(graph), rule, rewrites).run();
}

}  // namespace ingot::core
