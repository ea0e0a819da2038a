// SPDX-License-Identifier: Apache-2.0
// Attention and rotary embeddings.
#include <array>
#include <cmath>
#include <limits>

#include "importers/onnx/converters/converters.h"
#include "ops/attention.h"
#include "ops/axis.h"
#include "ops/concat.h"

namespace ingot::core::onnx {
namespace {

constexpr size_t kMask = 3, kPastKey = 4, kPastValue = 5;  // inputs
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// [B, L, H*E] -> [B, H, L, E]
Value* heads_apart(Call& call, Value* x, const char* count) {
  Graph& graph = call.graph();
  if (x->type.rank() == 4) return x;
  const int64_t heads = call.attribute_integer(count, 0);
  const Shape& shape = x->type.shape;
  const std::optional<Dim> width =
      shape.size() == 3 && heads > 0 ? exact_quotient({shape[2]}, {heads}) : std::nullopt;
  if (!width) refuse_node(std::string("the operands have wrong dims, or ") + count + " is wrong");
  return transposed(graph, reshaped(graph, x, {shape[0], shape[1], heads, *width}), {0, 2, 1, 3});
}

// [B, H, L, E] -> [B, L, H*E]
Value* heads_joined(Graph& graph, Value* x) {
  x = transposed(graph, x, {0, 2, 1, 3});
  const Shape& shape = x->type.shape;
  return reshaped(graph, x, {shape[0], shape[1], shape[2] * shape[3]});
}

// Which keys each query may see, as [L, S]: those up to its own position, behind `past` earlier ones.
Value* causal_mask(Graph& graph, const Dim& queries, const Dim& keys, const Dim& past) {
  const Term row(graph, reshaped(graph, counting(graph, queries), {queries, 1}));
  const Term limit = row + Term(graph, size_scalar(graph, past, DType::kI64));
  const Term column(graph, reshaped(graph, counting(graph, keys), {1, keys}));
  return column.apply(ops::less_equal, limit);
}

// The mask of the call and causality, as one; null if there is neither. Masks may be shorter than the keys.
Value* joint_mask(Call& call, const Dim& queries, const Dim& keys, const Dim& past) {
  Graph& graph = call.graph();
  Value* mask = call.optional_tensor(kMask);
  if (mask != nullptr && mask->type.rank() == 0) refuse_node("the mask has no dims");
  if (mask != nullptr && mask->type.shape.back() != keys) {
    const bool is_bool = mask->type.dtype == DType::kBool;
    ops::Pad pad{Shape(mask->type.rank(), 0), Shape(mask->type.rank(), 0), is_bool ? 0 : -kInfinity,
                 "constant"};
    pad.high.back() = keys - mask->type.shape.back();
    mask = graph.call(ops::pad, {mask}, pad);
  }
  if (!call.flag("is_causal")) return mask;
  const Term causal(graph, causal_mask(graph, queries, keys, past));
  if (mask == nullptr) return causal;
  const Term given(graph, mask);
  if (mask->type.dtype == DType::kBool) return causal.apply(ops::logical_and, given);
  return causal.choose(given, given.constant(-kInfinity));
}

Value* repeated_heads(Graph& graph, Value* x, const Dim& heads) {
  const Shape shape = x->type.shape;
  if (shape[1] == heads) return x;
  const std::optional<Dim> times = exact_quotient({heads}, {shape[1]});
  if (!times) refuse_node("the heads of the queries are not a multiple of those of the keys");
  x = expanded(graph, unsqueezed(graph, x, 2), {shape[0], shape[1], *times, shape[2], shape[3]});
  return reshaped(graph, x, {shape[0], heads, shape[2], shape[3]});
}

// Step by step, for a limit of the scores, or for callers that ask for them.
Value* by_steps(Call& call, Value* query, Value* key, Value* value, Value* mask, double scale) {
  Graph& graph = call.graph();
  const Dim heads = query->type.shape[1];
  key = transposed(graph, repeated_heads(graph, key, heads), {0, 1, 3, 2});
  Term scores = Term(graph, graph.call(ops::matmul, {query, key})) * scale;
  const int64_t mode = call.attribute_integer("qk_matmul_output_mode", 0);
  const double limit = call.attribute_number("softcap", 0);
  std::array<Value*, 4> steps{scores, scores, scores, scores};
  if (limit > 0) scores = (scores / limit).apply(ops::tanh) * limit;
  steps[1] = scores;
  if (mask != nullptr) {
    const Term given(graph, mask), low = scores.constant(-kInfinity);
    scores =
        mask->type.dtype == DType::kBool ? given.choose(scores, low) : scores + given.to(query->type.dtype);
  }
  steps[2] = scores;
  const auto last = static_cast<int64_t>(static_cast<Value*>(scores)->type.rank()) - 1;
  const Term parts(graph, graph.call(ops::softmax, {scores}, ops::Axis{last}));
  // A query that sees no key gets zeros.
  steps[3] = parts.apply(ops::is_nan).choose(parts.constant(0), parts);
  if (mode < 0 || mode > 3) refuse_node("there is no such qk_matmul_output_mode");
  call.give(3, steps[static_cast<size_t>(mode)]);
  return graph.call(ops::matmul, {steps[3], repeated_heads(graph, value, heads)});
}

void convert_attention(Call& call) {
  Graph& graph = call.graph();
  Value* query = heads_apart(call, call.tensor(0), "q_num_heads");
  Value* key = heads_apart(call, call.tensor(1), "kv_num_heads");
  Value* value = heads_apart(call, call.tensor(2), "kv_num_heads");
  Dim past = 0;
  if (call.has(kPastKey) && call.has(kPastValue)) {
    past = dim_of(call.tensor(kPastKey), 2);
    key = concatenated(graph, {call.tensor(kPastKey), key}, 2);
    value = concatenated(graph, {call.tensor(kPastValue), value}, 2);
  }
  call.give(1, key);
  call.give(2, value);
  const Shape &queries = query->type.shape, &keys = key->type.shape;
  if (!queries[3].is_constant()) refuse("the size of a head is not fixed");
  const double scale =
      call.attribute_number("scale", 1 / std::sqrt(static_cast<double>(*queries[3].constant())));
  const bool is_grouped = queries[1] != keys[1];
  Value* mask = joint_mask(call, queries[2], keys[2], past);
  const bool is_plain = call.attribute_number("softcap", 0) <= 0 && !call.wants(3) && scale != 0;
  Value* result = is_plain
                      ? graph.call(ops::attention, {query, key, value, mask},
                                   ops::Attention{.scale = scale, .causal = false, .grouped = is_grouped})
                      : by_steps(call, query, key, value, mask, scale);
  call.give(0, call.rank(0) == 3 ? heads_joined(graph, result) : result);
}

// The cosines or sines of each position, as [B, L, 1, R/2].
Value* angles(Call& call, size_t input, const Shape& x) {
  Graph& graph = call.graph();
  Value* cache = call.tensor(input);
  if (call.has(3)) {
    Value* positions = wrapped_indices(graph, call.tensor(3), dim_of(cache, 0));
    cache = graph.call(ops::take, {cache, positions}, ops::Axis{0});
  }
  if (cache->type.rank() != 3) refuse_node("the caches have a wrong number of dims");
  cache = expanded(graph, cache, broadcast(cache->type.shape, {x[0], x[1], 1}));
  return unsqueezed(graph, cache, 2);
}

void convert_rotary_embedding(Call& call) {
  Graph& graph = call.graph();
  Value* given = call.tensor(0);
  Value* x = transposed(graph, heads_apart(call, given, "num_heads"), {0, 2, 1, 3});  // [B, L, H, E]
  const Dim size = x->type.shape[3];
  const int64_t rotated = call.attribute_integer("rotary_embedding_dim", 0);
  const Dim width = rotated == 0 ? size : Dim(rotated);
  const std::optional<Dim> half = exact_quotient({width}, {2});
  if (!half) refuse_node("an odd number of elements to rotate");
  const Term cosine(graph, angles(call, 1, x->type.shape)), sine(graph, angles(call, 2, x->type.shape));
  const bool is_interleaved = call.flag("interleaved");
  Value* turned = sliced(graph, x, 3, 0, width);
  const auto part = [&](int64_t index) {
    if (is_interleaved) return sliced(graph, turned, 3, index, width, 2);
    return sliced(graph, turned, 3, *half * Dim(index), *half * Dim(index + 1));
  };
  const Term first(graph, part(0)), second(graph, part(1));
  Value* re = cosine * first - sine * second;
  Value* im = sine * first + cosine * second;
  if (is_interleaved) {
    Value* pairs = concatenated(graph, {unsqueezed(graph, re, 4), unsqueezed(graph, im, 4)}, 4);
    turned = reshaped(graph, pairs, turned->type.shape);
  } else {
    turned = concatenated(graph, {re, im}, 3);
  }
  if (width != size) turned = concatenated(graph, {turned, sliced(graph, x, 3, width, size)}, 3);
  turned = transposed(graph, turned, {0, 2, 1, 3});
  call.give(given->type.rank() == 3 ? heads_joined(graph, turned) : turned);
}

constexpr auto kAttention = std::to_array<Converter>({
    {"Attention", convert_attention, nullptr, 23},
    {"RotaryEmbedding", convert_rotary_embedding, nullptr, 23},
});

}  // namespace

std::span<const Converter> attention_converters() { return kAttention; }

}  // namespace ingot::core::onnx
