// SPDX-License-Identifier: Apache-2.0
// With a = (q - z) s and w = (p) t, sums over the depth: sum(a w) = (sum(q p) - z sum(p)) s t. Both sums are
// of integers, and exact. Where both are computed, w = (p - y) t: sum(a w) = (sum(q p) - z sum(p) - y sum(q -
// z)) s t.
#include <algorithm>
#include <optional>

#include "ops/concat.h"
#include "ops/convolution.h"
#include "ops/ops.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/select.h"
#include "passes/hoist.h"
#include "passes/integer_constant.h"
#include "passes/replace_all_uses.h"
#include "passes/scale_to_quantize.h"
#include "passes/separate_windows.h"
#include "passes/simplify/pattern.h"
#include "passes/target_passes.h"

namespace ingot::core {
namespace {

using rewriting::number_everywhere;

// What a contraction reads: the numbers, and what they stand for.
struct Quantized {
  Value *numbers, *scale, *zero_point;  // the last is null for 0
};

std::optional<Quantized> quantized(const Value* value) {
  const Node* node = value->producer;
  if (node == nullptr || node->op != &ops::dequantize) return std::nullopt;
  const DType dtype = node->operand_type(0).dtype;
  if (dtype != DType::kU8 && dtype != DType::kI8) return std::nullopt;
  Value* zero_point = node->has_operand(2) ? node->operands[2] : nullptr;
  if (zero_point != nullptr && number_everywhere(zero_point) == 0.0) zero_point = nullptr;
  return Quantized{node->operands[0], node->operands[1], zero_point};
}

// One number for each column of the weight, or one for all.
bool is_of_columns(const Value* scale, const Value* weight) {
  if (scale->type.rank() == 0) return true;
  const bool others_are_one = std::all_of(scale->type.shape.begin() + 1, scale->type.shape.end(),
                                          [](const Dim& dim) { return dim == Dim(1); });
  return scale->type.rank() == weight->type.rank() && others_are_one &&
         (scale->type.shape[0] == Dim(1) || scale->type.shape[0] == weight->type.shape[0]);
}

// The scale of a transposed convolution's weight [C, O, *window], as one for all or [1, O, *window]; null if
// it is of other dims.
Value* scale_of_windows(Graph& graph, Value* scale, const Shape& weight) {
  const Shape& given = scale->type.shape;
  if (given.empty()) return scale;
  const bool has_rows = given.size() == weight.size() && given[0] == Dim(1);
  if (!has_rows && given.size() + 1 != weight.size()) return nullptr;
  const auto of_columns = std::span(given).last(weight.size() - 1);
  if (of_columns[0] != weight[1] ||
      std::ranges::any_of(of_columns.subspan(1), [](const Dim& dim) { return dim != Dim(1); }))
    return nullptr;
  Shape shape(weight.size(), 1);
  shape[1] = weight[1];
  scale = graph.call(ops::reshape, {scale}, ops::NewShape{shape});
  std::copy(weight.begin() + 2, weight.end(), shape.begin() + 2);
  return graph.call(ops::expand, {scale}, ops::NewShape{shape});
}

// One scale, and a known zero point that is a number of the dtype: padding is filled with it, and its
// products fit 32 bits.
bool is_for_all(const Quantized& x) {
  if (x.scale->type.rank() != 0) return false;
  if (x.zero_point == nullptr) return true;
  const auto number = number_everywhere(x.zero_point);
  const int low = x.numbers->type.dtype == DType::kU8 ? 0 : -128;
  return number && x.zero_point->type.rank() == 0 && *number >= low && *number <= low + 255;
}

// Sums of this many products fit 32 bits.
constexpr int64_t kDeepest = (int64_t{1} << 31) / (255 * 128) - 1;

class MultiplyQuantized {
 public:
  MultiplyQuantized(Graph graph, const QuantizedRule& rule, Rewrites& rewrites)
      : graph_(std::move(graph)), rule_(rule), rewrites_(rewrites), invariant_(invariant_nodes(graph_)) {}

  Graph run() {
    for (Node* node : graph_.node_list()) {
      if (has_separate_windows(*node)) visit_transposed(node);
      if (node->op == &ops::linear || node->op == &ops::convolution) visit(node);
      if (node->op == &ops::matmul) visit_matmul(node);
    }
    graph_.erase_dead_nodes();
    scale_to_quantize(graph_, rewrites_);
    return std::move(graph_);
  }

 private:
  static bool is_padded(const Node& node) {
    return node.op == &ops::convolution &&
           std::ranges::any_of(node.attributes<ops::Convolution>().padding, [](int64_t n) { return n > 0; });
  }

  bool is_weight(const Quantized& weight) const {
    const auto depth = product(std::span(weight.numbers->type.shape).subspan(1)).constant();
    return weight.zero_point == nullptr && weight.numbers->type.dtype == DType::kI8 && depth &&
           *depth <= kDeepest && is_of_columns(weight.scale, weight.numbers) &&
           invariant_.contains(weight.numbers->producer);
  }

  void visit(Node* node) {
    auto x = quantized(node->operands[0]), weight = quantized(node->operands[1]);
    if (!x || !weight || !is_for_all(*x) || !is_weight(*weight) || rewrites_.is_disabled(*node)) return;
    const int64_t multiple = rule_(*node);
    if (multiple == 0 || !rewrites_.allow(*node)) return;
    const Graph::InsertBefore scope(graph_, node);
    const size_t axis = node->op == &ops::linear ? x->numbers->type.rank() - 1 : 1;
    x->numbers = padded(x->numbers, axis, multiple);
    weight->numbers = padded(weight->numbers, 1, multiple);
    replace_all_uses(graph_, node->results[0], scaled(*node, *x, *weight));
  }

  // Becomes an ordinary convolution, whose result is quantized before its elements are moved.
  void visit_transposed(Node* node) {
    const auto x = quantized(node->operands[0]), weight = quantized(node->operands[1]);
    if (!x || !weight || !is_for_all(*x) || weight->zero_point || rewrites_.is_disabled(*node)) return;
    if (!invariant_.contains(weight->numbers->producer)) return;
    const Graph::InsertBefore scope(graph_, node);
    Value* scale = scale_of_windows(graph_, weight->scale, weight->numbers->type.shape);
    if (scale == nullptr) return;
    if (scale->type.rank() != 0) scale = weight_of_windows(graph_, scale);
    Value* numbers = weight_of_windows(graph_, weight->numbers);
    invariant_.insert(numbers->producer);
    Value* result = convolve_windows(graph_, *node, graph_.call(ops::dequantize, {numbers, scale, nullptr}));
    Node* convolution = result->producer->operands[0]->producer;
    replace_all_uses(graph_, node->results[0], result);
    quantize_windows(*result);
    visit(convolution);
  }
  void quantize_windows(const Value& fold) {
    if (fold.users.size() != 1 || fold.users.front()->op != &ops::quantize) return;
    Node* quantization = fold.users.front();
    const Graph::InsertBefore scope(graph_, quantization);
    Value* numbers = quantize_before_rearrangement(graph_, *quantization);
    if (numbers != nullptr) replace_all_uses(graph_, quantization->results[0], numbers);
  }

  // More of the depth: the products there are 0, as the weights are.
  Value* padded(Value* numbers, size_t axis, int64_t multiple) {
    const Dim depth = numbers->type.shape[axis];
    const Dim missing = ceil_divide(depth, multiple) * Dim(multiple) - depth;
    if (missing == Dim(0)) return numbers;
    const std::vector<Dim> none(numbers->type.rank(), 0);
    ops::Pad pad{.low = none, .high = none};
    pad.high[axis] = missing;
    return graph_.call(ops::pad, {numbers}, pad);
  }

  // Products of two computed values, such as those of attention.
  void visit_matmul(Node* node) {
    auto a = quantized(node->operands[0]), b = quantized(node->operands[1]);
    const Dim depth = node->operand_type(0).shape.back();
    if (!a || !b || !is_for_all(*a) || !is_for_all(*b) ||
        range_of(depth, graph_.symbols).max > kDeepest / 2 || rewrites_.is_disabled(*node))
      return;
    const int64_t multiple = rule_(*node);
    if (multiple == 0 || !rewrites_.allow(*node)) return;
    const Graph::InsertBefore scope(graph_, node);
    shift_to_signed(*b);
    const auto axis = static_cast<int64_t>(node->operand_type(1).rank()) - 2;
    Value* sums =
        graph_.call(ops::integer_matmul, {padded(a->numbers, node->operand_type(0).rank() - 1, multiple),
                                          padded(b->numbers, static_cast<size_t>(axis), multiple)});
    if (a->zero_point) sums = less(sums, a->zero_point, sum_over(wide(b->numbers), axis));
    if (b->zero_point) {
      Value* centered = wide(a->numbers);
      if (a->zero_point) centered = graph_.call(ops::subtract, {centered, a->zero_point});
      sums = less(sums, b->zero_point,
                  sum_over(centered, static_cast<int64_t>(node->operand_type(0).rank()) - 1));
    }
    Value* scale = graph_.call(ops::multiply, {a->scale, b->scale});
    replace_all_uses(
        graph_, node->results[0],
        graph_.call(ops::multiply, {graph_.call(ops::convert, {sums}, ops::Convert{DType::kF32}), scale}));
  }

  Value* wide(Value* numbers) { return graph_.call(ops::convert, {numbers}, ops::Convert{DType::kI32}); }
  Value* sum_over(Value* numbers, int64_t axis) {
    return graph_.call(ops::sum, {numbers}, ops::Reduce{{axis}, /*keep_dims=*/true});
  }
  Value* less(Value* sums, Value* zero_point, Value* others) {
    return graph_.call(ops::subtract, {sums, graph_.call(ops::multiply, {others, zero_point})});
  }

  // The second operand of products is i8: u8 less 128 stands for the same with a zero point less 128.
  void shift_to_signed(Quantized& x) {
    if (x.numbers->type.dtype == DType::kI8) return;
    Value* shift = integer_constant(graph_, kByteShift);
    x.numbers = graph_.call(ops::convert, {graph_.call(ops::subtract, {wide(x.numbers), shift})},
                            ops::Convert{DType::kI8});
    const auto zero_point = x.zero_point ? static_cast<int64_t>(*number_everywhere(x.zero_point)) : 0;
    x.zero_point = zero_point == kByteShift ? nullptr : integer_constant(graph_, zero_point - kByteShift);
  }

  Value* multiplied(const Node& node, const Quantized& x, Value* weight) {
    if (node.op == &ops::linear) return graph_.call(ops::integer_linear, {x.numbers, weight});
    const auto window = node.attributes<ops::Convolution>();
    const auto outside =
        x.zero_point && is_padded(node) ? static_cast<int64_t>(*number_everywhere(x.zero_point)) : 0;
    return graph_.call(
        ops::integer_convolution, {x.numbers, weight},
        ops::IntegerConvolution{window.stride, window.padding, window.dilation, window.groups, outside});
  }

  // One value for each column, in the shape that broadcasts to the result.
  Value* along_columns(const Node& node, Value* value) {
    const bool is_row = node.op == &ops::linear && value->type.rank() == 1;
    if (value->type.rank() == 0 || is_row) return value;
    Shape shape(node.op == &ops::linear ? 1 : node.results[0]->type.rank() - 1, 1);
    shape[0] = value->type.shape[0];
    return graph_.call(ops::reshape, {value}, ops::NewShape{shape});
  }

  Value* scaled(const Node& node, const Quantized& x, const Quantized& weight) {
    Value* sums = multiplied(node, x, weight.numbers);
    if (x.zero_point) {
      std::vector<int64_t> depth;
      for (size_t i = 1; i < weight.numbers->type.rank(); ++i) depth.push_back(static_cast<int64_t>(i));
      Value* wide = graph_.call(ops::convert, {weight.numbers}, ops::Convert{DType::kI32});
      Value* of_columns =
          along_columns(node, graph_.call(ops::sum, {wide}, ops::Reduce{std::move(depth), false}));
      sums = graph_.call(ops::subtract, {sums, graph_.call(ops::multiply, {of_columns, x.zero_point})});
    }
    Value* scale = graph_.call(ops::multiply, {along_columns(node, weight.scale), x.scale});
    Value* result =
        graph_.call(ops::multiply, {graph_.call(ops::convert, {sums}, ops::Convert{DType::kF32}), scale});
    if (!node.has_operand(2)) return result;
    return graph_.call(ops::add, {result, along_columns(node, node.operands[2])});
  }

  Graph graph_;
  const QuantizedRule& rule_;
  Rewrites& rewrites_;
  std::set<const Node*> invariant_;
};

}  // namespace

Graph multiply_quantized(Graph graph, const QuantizedRule& rule, Rewrites& rewrites) {
  return MultiplyQuantized(std::move(graph), rule, rewrites).run();
}

}  // namespace ingot::core
