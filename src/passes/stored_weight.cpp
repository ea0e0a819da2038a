// SPDX-License-Identifier: Apache-2.0
#include "passes/stored_weight.h"

#include <algorithm>

#include "ops/ops.h"
#include "ops/reshape.h"
#include "ops/select.h"
#include "ops/view.h"
#include "passes/converted_values.h"
#include "passes/simplify/pattern.h"

namespace ingot::core {
namespace {

constexpr int kWide = 32;

bool is_number_dtype(DType dtype) { return bit_width(dtype) < kWide && dtype != DType::kBool; }

// Each value of one dtype is a value of the other.
bool keeps_values(DType from, DType to) {
  if (bit_width(from) >= bit_width(to)) return from == to;
  return is_floating(from) ? is_floating(to) : is_floating(to) || is_signed(to);
}

// Scales and zero points as they are stored: their conversion joins the product.
Value* as_stored(Graph& graph, Value* value) {
  const DType stored = dtype_before_widening(value);
  return stored != value->type.dtype && keeps_values(stored, value->type.dtype)
             ? narrowed(graph, value, stored)
             : value;
}

bool is_one(const Dim& dim) { return dim == Dim(1); }

class Finder {
 public:
  explicit Finder(Graph& graph) : graph_(graph) {}

  // In the shape of `value`; scales and zero points have its rank, and dims that divide its dims.
  std::optional<StoredWeight> find(Value* value) {
    const Node* node = value->producer;
    if (node == nullptr || value->type.rank() == 0) return std::nullopt;
    if (node->op == &ops::convert) return find_converted(*node);
    if (node->op == &ops::dequantize) return find_dequantized(*node);
    if (node->op == &ops::multiply) return find_scaled(*node);
    if (node->op == &ops::subtract) return find_centered(*node);
    if (node->op == &ops::transpose) return find_transposed(*node);
    if (node->op == &ops::reshape) return find_reshaped(*node);
    return std::nullopt;
  }

  Value* transposed(Value* value, const std::vector<int64_t>& order) {
    if (value == nullptr) return nullptr;
    const Node* before = value->producer;
    const bool is_back = before->op == &ops::transpose && order == std::vector<int64_t>{1, 0} &&
                         before->attributes<ops::Permutation>().order == order;
    return is_back ? before->operands[0] : graph_.call(ops::transpose, {value}, ops::Permutation{order});
  }

 private:
  std::optional<StoredWeight> find_converted(const Node& node) {
    Value* source = node.operands[0];
    if (!is_floating(node.results[0]->type.dtype)) return std::nullopt;
    return is_number_dtype(source->type.dtype) && !is_dequantized(source) ? numbers(source) : find(source);
  }
  // Halves may be numbers, or a dequantized weight that was rounded.
  bool is_dequantized(Value* source) { return is_half(source->type.dtype) && find(source); }

  StoredWeight numbers(Value* value) {
    const Node* node = source_of(value);
    StoredWeight found{.numbers = value};
    if (node == nullptr || node->op != &ops::clamp) return found;
    const auto limits = node->attributes<ops::Clamp>();
    found.range = {limits.low, limits.high};
    return found;
  }

  std::optional<StoredWeight> find_dequantized(const Node& node) {
    if (!is_number_dtype(node.operand_type(0).dtype)) return std::nullopt;
    StoredWeight found = numbers(node.operands[0]);
    found.scale = of_rank(node.operands[1], found.numbers->type.rank());
    if (node.has_operand(2)) found.zero_point = of_rank(node.operands[2], found.numbers->type.rank());
    return found;
  }

  std::optional<StoredWeight> find_scaled(const Node& node) {
    for (const size_t i : {size_t{0}, size_t{1}}) {
      Value *value = node.operands[i], *scale = node.operands[1 - i];
      if (value->type.shape != node.results[0]->type.shape) continue;
      std::optional<StoredWeight> found = find(value);
      if (!found || found->scale != nullptr) continue;
      found->scale = of_rank(scale, value->type.rank());
      return found;
    }
    return std::nullopt;
  }

  std::optional<StoredWeight> find_centered(const Node& node) {
    Value* value = node.operands[0];
    if (value->type.shape != node.results[0]->type.shape) return std::nullopt;
    std::optional<StoredWeight> found = find(value);
    if (!found || found->scale != nullptr || found->zero_point != nullptr) return std::nullopt;
    found->zero_point = of_rank(node.operands[1], value->type.rank());
    return found;
  }

  std::optional<StoredWeight> find_transposed(const Node& node) {
    std::optional<StoredWeight> found = find(node.operands[0]);
    const auto order = node.attributes<ops::Permutation>().order;
    if (!found) return found;
    for (Value** value : {&found->numbers, &found->scale, &found->zero_point})
      *value = transposed(*value, order);
    return found;
  }

  // Blocks of one dim that become that dim: [.., G, g, ..] to [.., G g, ..], or all rows of blocks to rows.
  std::optional<StoredWeight> find_reshaped(const Node& node) {
    std::optional<StoredWeight> found = find(node.operands[0]);
    const Shape &from = node.operand_type(0).shape, &to = node.results[0]->type.shape;
    if (!found || to.size() != 2) return std::nullopt;
    found->numbers = reshaped(found->numbers, to);
    for (Value** value : {&found->scale, &found->zero_point}) {
      if (*value == nullptr) continue;
      *value = of_blocks(*value, from, to);
      if (*value == nullptr) return std::nullopt;
    }
    return found;
  }

  Value* of_blocks(Value* value, const Shape& from, const Shape& to) {
    const Shape& own = value->type.shape;
    if (std::ranges::all_of(own, is_one)) return reshaped(value, {1, 1});
    if (from.size() == 2) {
      const auto columns = to[1].constant(), block = from[1].constant();
      const bool divides = columns && block && *block != 0 && *columns % *block == 0;
      if (!divides || !is_one(own[1]) || own[0] != from[0]) return nullptr;
      return reshaped(value, {to[0], Dim(*columns / *block)});
    }
    if (from.size() != 3) return nullptr;
    if (from[0] == to[0] && is_one(own[2])) return reshaped(value, {own[0], own[1]});
    if (from[2] == to[1] && is_one(own[1])) return reshaped(value, {own[0], own[2]});
    return nullptr;
  }

  Value* reshaped(Value* value, Shape shape) {
    if (value->type.shape == shape) return value;
    return graph_.call(ops::reshape, {value}, ops::NewShape{std::move(shape)});
  }
  Value* of_rank(Value* value, size_t rank) {
    value = as_stored(graph_, value);
    Shape shape(rank - value->type.rank(), 1);
    shape.insert(shape.end(), value->type.shape.begin(), value->type.shape.end());
    return reshaped(value, std::move(shape));
  }

  Graph& graph_;
};

bool divides(const Value* value, const TensorType& matrix) {
  if (value == nullptr) return true;
  const auto blocks = value->type.shape[1].constant(), depth = matrix.shape[1].constant();
  return (is_one(value->type.shape[0]) || value->type.shape[0] == matrix.shape[0]) && blocks && depth &&
         *blocks != 0 && *depth % *blocks == 0;
}

}  // namespace

std::optional<StoredWeight> stored_weight(Graph& graph, Value* weight, bool transposed) {
  Finder finder(graph);
  if (weight->type.rank() != 2) return std::nullopt;
  std::optional<StoredWeight> found = finder.find(weight);
  if (!found || found->scale == nullptr) return std::nullopt;
  if (transposed) {
    for (Value** value : {&found->numbers, &found->scale, &found->zero_point})
      *value = finder.transposed(*value, {1, 0});
  }
  if (found->zero_point != nullptr && rewriting::number_everywhere(found->zero_point) == 0.0)
    found->zero_point = nullptr;
  if (!divides(found->scale, found->numbers->type) || !divides(found->zero_point, found->numbers->type))
    return std::nullopt;
  return found;
}

}  // namespace ingot::core
