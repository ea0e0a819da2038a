// SPDX-License-Identifier: Apache-2.0
// torch's fused layers of transformers, which its modules call at inference.
#include "importers/aten/converters/converters.h"
#include "importers/aten/converters/terms.h"
#include "ops/activation.h"
#include "ops/attention.h"
#include "ops/normalization.h"

namespace ingot::core::aten {
namespace {

// The attention mask, broadcastable to [B, heads, queries, keys]; null: none. The fused layers specify the
// masked keys: for all batches [L, L], for all queries [B, L], or in full [B, heads, L, L].
core::Value* taking_part(Call& call) {
  core::Value* mask = call.optional_tensor("mask");
  if (mask == nullptr) return nullptr;
  Term part = !Term(call, converted(call.graph(), mask, DType::kBool));
  const int64_t type = call.has("mask_type") ? call.integer("mask_type") : 2;
  if (type == 1 && part.shape().size() == 2)
    part = {call, reshaped(call, part, {part.shape()[0], 1, 1, part.shape()[1]})};
  return part;
}

// [B, L, width] -> one third of the channels as [B, heads, L, width / heads].
core::Value* heads_of(Call& call, core::Value* joined, int64_t third, const Dim& heads) {
  const Shape& shape = joined->type.shape;
  const Dim width = floor_divide(extent(call, joined, 2), 3);
  core::Value* part = sliced(call, joined, 2, width * Dim(third), width * Dim(third + 1));
  part = reshaped(call, part, {shape[0], shape[1], heads, floor_divide(width, heads)});
  return swapped(call, part, 1, 2);
}

Term attended(Call& call, const Term& x, const Dim& heads) {
  call.require(x.shape().size() == 3, "a source that is not a batch of sequences");
  core::Value* joined = emit(call, ops::linear, {x, call.tensor("qkv_weight"), call.tensor("qkv_bias")});
  core::Value* result = emit(call, ops::attention,
                             {heads_of(call, joined, 0, heads), heads_of(call, joined, 1, heads),
                              heads_of(call, joined, 2, heads), taking_part(call)},
                             ops::Attention{});
  result = reshaped(call, swapped(call, result, 1, 2), x.shape());
  return {call, emit(call, ops::linear, {result, call.tensor("proj_weight"), call.tensor("proj_bias")})};
}

Term normalized(Call& call, const Term& x, const char* weight, const char* bias) {
  const ops::Normalization norm{call.number("eps"), 1};
  return {call, emit(call, ops::layer_norm, {x, call.tensor(weight), call.tensor(bias)}, norm)};
}
Term fed_forward(Call& call, const Term& x) {
  core::Value* wide = emit(call, ops::linear, {x, call.tensor("ffn_weight_1"), call.tensor("ffn_bias_1")});
  wide = call.flag("use_gelu") ? emit(call, ops::gelu, {wide}, ops::Gelu{}) : emit(call, ops::relu, {wide});
  return {call, emit(call, ops::linear, {wide, call.tensor("ffn_weight_2"), call.tensor("ffn_bias_2")})};
}

void encoder_layer(Call& call) {
  core::Value* source = call.tensor("src");
  const bool single = source->type.rank() == 2;
  Term x(call, single ? unsqueezed(call, source, 0) : source);
  const Dim heads = call.integer("num_heads");
  const auto first = [&](const Term& value) {
    return normalized(call, value, "norm_weight_1", "norm_bias_1");
  };
  const auto second = [&](const Term& value) {
    return normalized(call, value, "norm_weight_2", "norm_bias_2");
  };
  if (call.flag("norm_first")) {
    x = x + attended(call, first(x), heads);
    x = x + fed_forward(call, second(x));
  } else {
    x = first(x + attended(call, x, heads));
    x = second(x + fed_forward(call, x));
  }
  call.give(single ? without_axes(call, x, {0}) : x);
}

void self_attention(Call& call) {
  if (call.flag("need_weights")) call.refuse("the weights of attention as a result");
  core::Value* query = call.tensor("query");
  if (call.tensor("key") != query || call.tensor("value") != query)
    call.refuse("attention other than self-attention");
  call.give(0, attended(call, {call, query}, call.integer("num_head")));
}

constexpr Converter kEncoderConverters[] = {
    {"aten._native_multi_head_attention.default", self_attention},
    {"aten._transformer_encoder_layer_fwd.default", encoder_layer},
};

}  // namespace

std::span<const Converter> encoder_converters() { return kEncoderConverters; }

}  // namespace ingot::core::aten
