// SPDX-License-Identifier: Apache-2.0
// Moves dequantization behind what only moves or selects elements, and quantization before it, so that these
// see the integers; quantizing again with the same parameters then is nothing, as are limits that the range
// has too.
#include <algorithm>
#include <cmath>

#include "ops/ops.h"
#include "ops/quantize.h"
#include "ops/select.h"
#include "passes/one_user.h"
#include "passes/separate_windows.h"
#include "passes/simplify/rules.h"

namespace ingot::core::rewriting {
namespace {

constexpr size_t kScale = 1, kZeroPoint = 2;

Value* operand(const Node& node, size_t i) { return node.has_operand(i) ? node.operands[i] : nullptr; }

bool are_equal(const Value* a, const Value* b) {
  if (a == b) return true;
  if (a == nullptr || b == nullptr || a->type.rank() != 0 || b->type.rank() != 0) return false;
  const auto x = number_everywhere(a), y = number_everywhere(b);
  return x && y && *x == *y;
}

// One scale and one zero point for all elements: null otherwise.
const Node* whole_dequantization(const Value* value) {
  const Node* node = value->producer;
  if (node == nullptr || node->op != &ops::dequantize) return nullptr;
  for (const size_t i : {kScale, kZeroPoint}) {
    if (node->has_operand(i) && node->operand_type(i).rank() != 0) return nullptr;
  }
  return node;
}

Value* dequantized(Graph& graph, Value* numbers, const Node& like) {
  return graph.call(ops::dequantize, {numbers, operand(like, kScale), operand(like, kZeroPoint)});
}

Value* dequantize_behind(Graph& graph, const Match& match) {
  const Node& root = match.root();
  const Node* dequantization = whole_dequantization(root.operands[0]);
  if (dequantization == nullptr) return nullptr;
  return dequantized(graph, graph.call(*root.op, {dequantization->operands[0]}, root.values),
                     *dequantization);
}

Value* dequantize_joined(Graph& graph, const Match& match) {
  const Node& root = match.root();
  std::vector<Value*> parts;
  const Node* first = whole_dequantization(root.operands[0]);
  for (const Value* part : root.operands) {
    const Node* one = whole_dequantization(part);
    if (one == nullptr || one->operand_type(0).dtype != first->operand_type(0).dtype) return nullptr;
    for (const size_t i : {kScale, kZeroPoint}) {
      if (!are_equal(operand(*one, i), operand(*first, i))) return nullptr;
    }
    parts.push_back(one->operands[0]);
  }
  return dequantized(graph, graph.call(*root.op, std::move(parts), root.values), *first);
}

bool are_inverse(const Value* scale, const Value* inverse) {
  constexpr double kRounding = 1e-5;  // (q - zero point) * scale * inverse must round to q - zero point
  const Node* producer = inverse->producer;
  if (producer != nullptr && producer->op == &ops::reciprocal && producer->operands[0] == scale) return true;
  const auto a = number_everywhere(scale), b = number_everywhere(inverse);
  return a && b && std::abs(*a * *b - 1) < kRounding;
}

bool covers(const ops::Quantize& range) {
  const int bits = bit_width(range.dtype);
  if (bits != 8) return false;
  const int64_t smallest = is_signed(range.dtype) ? -128 : 0;
  return range.minimum <= smallest && range.maximum >= smallest + 255;
}

Value* numbers_of_same(Graph&, const Match& match) {
  const Node &root = match.root(), *before = root.operands[0]->producer;
  const auto range = root.attributes<ops::Quantize>();
  Value* numbers = before->operands[0];
  const Node* made = numbers->producer;
  const bool in_range = made != nullptr && made->op == &ops::quantize && made->values == root.values;
  if (numbers->type.dtype != range.dtype || (!in_range && !covers(range))) return nullptr;
  if (!are_equal(operand(*before, kZeroPoint), operand(root, kZeroPoint))) return nullptr;
  return are_inverse(before->operands[kScale], root.operands[kScale]) ? numbers : nullptr;
}

bool quantizes_dequantized(const Match& match) {
  const Node* before = match.root().operands[0]->producer;
  return before != nullptr && before->op == &ops::dequantize;
}

// What a value is limited to; nullopt: it is not.
std::optional<ops::Clamp> limits(const Node* node) {
  if (node == nullptr) return std::nullopt;
  if (node->op == &ops::relu) return ops::Clamp{.low = 0};
  if (node->op != &ops::clamp) return std::nullopt;
  return node->attributes<ops::Clamp>();
}

constexpr size_t kInverseScale = 1;

// By one scale and one zero point for all elements, of what has no other reader.
const Node* only_before(const Graph& graph, const Node& quantization) {
  for (const size_t i : {kInverseScale, kZeroPoint}) {
    if (quantization.has_operand(i) && quantization.operand_type(i).rank() != 0) return nullptr;
  }
  const Value* value = quantization.operands[0];
  return has_one_user(graph, value) ? value->producer : nullptr;
}

Value* quantized_like(Graph& graph, Value* value, const Node& like) {
  return graph.call(ops::quantize, {value, like.operands[kInverseScale], operand(like, kZeroPoint)},
                    like.values);
}

// Larger numbers become no smaller ones: by one positive scale for all elements.
std::optional<float> increasing_scale(const Node& quantization) {
  if (quantization.operand_type(kInverseScale).rank() != 0) return std::nullopt;
  const auto scale = number_everywhere(quantization.operands[kInverseScale]);
  return scale && *scale > 0 ? std::optional(static_cast<float>(*scale)) : std::nullopt;
}

// Whether the numbers are the same without limits of what is quantized: the range has them too.
bool has_limits(const Node& quantization, const ops::Clamp& clamp) {
  const auto scale = increasing_scale(quantization);
  const auto zero_point = quantization.has_operand(kZeroPoint)
                              ? number_everywhere(quantization.operands[kZeroPoint])
                              : std::optional(0.0);
  if (!scale || !zero_point) return false;
  const auto range = quantization.attributes<ops::Quantize>();
  const auto number_of = [&](double limit) {
    return std::nearbyint(static_cast<float>(limit) * *scale) + static_cast<float>(*zero_point);
  };
  return number_of(clamp.low) <= static_cast<float>(range.minimum) &&
         number_of(clamp.high) >= static_cast<float>(range.maximum);
}

// Where others read the limited value, too, it would be stored beside that without limits.
Value* quantized_without_limits(Graph& graph, const Match& match) {
  const Node* before = match.root().operands[0]->producer;
  const auto clamp = limits(before);
  if (!clamp || graph.is_output(before->results[0])) return nullptr;
  const bool gains = std::ranges::all_of(before->results[0]->users, [&](const Node* user) {
    return user->op == &ops::quantize && has_limits(*user, *clamp);
  });
  return gains ? quantized_like(graph, before->operands[0], match.root()) : nullptr;
}

Value* pooled_numbers(Graph& graph, const Match& match) {
  const Node& root = match.root();
  const Node* pool = only_before(graph, root);
  if (pool == nullptr || pool->op != &ops::max_pool || !increasing_scale(root)) return nullptr;
  return graph.call(ops::max_pool, {quantized_like(graph, pool->operands[0], root)}, pool->values);
}

// What computes a part may then store the numbers alone, if nothing else reads the part.
Value* join_quantized(Graph& graph, const Match& match) {
  const Node& root = match.root();
  const Node* join = only_before(graph, root);
  if (join == nullptr || join->op != &ops::concat) return nullptr;
  const bool gains = std::ranges::any_of(
      join->operands, [](const Value* part) { return part->producer != nullptr && part->users.size() == 1; });
  if (!gains) return nullptr;
  std::vector<Value*> parts;
  for (Value* part : join->operands) parts.push_back(quantized_like(graph, part, root));
  return graph.call(ops::concat, std::move(parts), join->values);
}

Value* rearrange_quantized(Graph& graph, const Match& match) {
  return quantize_before_rearrangement(graph, match.root());
}

constexpr Rule kQuantizationRules[] = {
    {.name = "quantize_joined", .from = "quantize(...)", .build = join_quantized},
    {.name = "quantize_folded", .from = "quantize(...)", .build = rearrange_quantized},
    {.name = "quantize_limited", .from = "quantize(...)", .build = quantized_without_limits},
    {.name = "quantize_pooled", .from = "quantize(...)", .build = pooled_numbers},
    {.name = "quantize_dequantized",
     .from = "quantize(...)",
     .when = quantizes_dequantized,
     .build = numbers_of_same},
    {.name = "reshape_quantized", .from = "reshape(x)", .build = dequantize_behind},
    {.name = "transpose_quantized", .from = "transpose(x)", .build = dequantize_behind},
    {.name = "slice_quantized", .from = "slice(x)", .build = dequantize_behind},
    {.name = "flip_quantized", .from = "flip(x)", .build = dequantize_behind},
    {.name = "max_pool_quantized", .from = "max_pool(x)", .build = dequantize_behind},
    {.name = "concat_quantized", .from = "concat(...)", .build = dequantize_joined},
};

}  // namespace

std::span<const Rule> quantization_rules() { return kQuantizationRules; }

}  // namespace ingot::core::rewriting
