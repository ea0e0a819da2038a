// SPDX-License-Identifier: Apache-2.0
// Matrix products and attention.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "importers/aten/converters/building.h"
#include "importers/aten/converters/converters.h"
#include "importers/aten/converters/matrices.h"
#include "importers/aten/converters/promotion.h"
#include "importers/aten/converters/random.h"
#include "ops/attention.h"
#include "ops/axis.h"
#include "ops/reduce.h"
#include "ops/size_condition.h"
#include "ops/view.h"

namespace ingot::core::aten {
namespace {

void linear(Call& call) {
  core::Value *x = call.tensor("input"), *weight = call.tensor("weight"),
              *bias = call.optional_tensor("bias");
  const Shape& size = weight->type.shape;
  const bool is_row = size.size() == 1;
  const bool is_broadcast = bias != nullptr && size.size() == 2 && bias->type.shape != Shape{size[0]};
  if (!is_row && !is_broadcast) return call.give(emit(call, ops::linear, {x, weight, bias}));
  core::Value* product = emit(call, ops::linear, {x, is_row ? unsqueezed(call, weight, 0) : weight, nullptr});
  if (is_row) product = without_axes(call, product, {static_cast<int64_t>(x->type.rank()) - 1});
  // A bias of another shape is broadcast to the product, and never the product to it.
  call.give(bias ? emit(call, ops::add, {product, expanded(call, bias, product->type.shape)}) : product);
}

core::Value* scaled_unless_one(Call& call, core::Value* value, std::string_view factor) {
  const double number = call.number(factor);
  if (number == 1) return value;
  return emit(call, ops::multiply, {value, scalar(call.graph(), number, value->type.dtype)});
}
bool is_transposed_matrix(const core::Value* value) {
  return value->producer != nullptr && value->producer->op == &ops::transpose && value->type.rank() == 2;
}

// Sums of products are rounded once: f16 and bf16 are computed in f32.
core::Value* summable(Call& call, core::Value* value) {
  return is_half(value->type.dtype) ? converted(call.graph(), value, DType::kF32) : value;
}
core::Value* wide_product(Call& call, core::Value* a, core::Value* b) {
  return emit(call, ops::matmul, {summable(call, a), summable(call, b)});
}
// beta * self + alpha * product, in the dtype of self.
void give_sum(Call& call, core::Value* product) {
  core::Value* x = call.tensor("self");
  core::Value* sum = scaled_unless_one(call, product, "alpha");
  if (call.number("beta") != 0)
    sum = emit(call, ops::add, {scaled_unless_one(call, summable(call, x), "beta"), sum});
  call.give(converted(call.graph(), sum, x->type.dtype));
}
// Recognizes torch's decomposition of a linear layer.
void add_product(Call& call, std::string_view first, std::string_view second) {
  core::Value *x = call.tensor("self"), *a = call.tensor(first), *b = call.tensor(second);
  const bool plain = call.number("alpha") == 1 && call.number("beta") == 1;
  const bool is_layer = plain && b->type.rank() == 2 && x->type.shape == Shape{b->type.shape[1]};
  if (is_layer && is_transposed_matrix(b))
    return call.give(emit(call, ops::linear, {a, b->producer->operands[0], x}));
  // A linear layer rounds once too.
  if (is_layer && is_half(b->type.dtype))
    return call.give(
        emit(call, ops::linear, {a, emit(call, ops::transpose, {b}, ops::Permutation{{1, 0}}), x}));
  give_sum(call, wide_product(call, a, b));
}
void addmm(Call& call) { add_product(call, "mat1", "mat2"); }
void baddbmm(Call& call) { add_product(call, "batch1", "batch2"); }
void addbmm(Call& call) {
  core::Value* products = wide_product(call, call.tensor("batch1"), call.tensor("batch2"));
  give_sum(call, emit(call, ops::sum, {products}, ops::Reduce{{0}, false}));
}
void addmv(Call& call) {
  core::Value* product = wide_product(call, call.tensor("mat"), unsqueezed(call, call.tensor("vec"), 1));
  give_sum(call, without_axes(call, product, {1}));
}

core::Value* matrix_product(Call& call, core::Value* a, core::Value* b) {
  if (is_transposed_matrix(b)) return emit(call, ops::linear, {a, b->producer->operands[0], nullptr});
  return emit(call, ops::matmul, {a, b});
}
void mm(Call& call) { call.give(matrix_product(call, call.tensor("self"), call.tensor("mat2"))); }

void integer_mm(Call& call) {
  core::Value *a = call.tensor("self"), *b = call.tensor("mat2");
  core::Value* weight = is_transposed_matrix(b) ? b->producer->operands[0]
                                                : emit(call, ops::transpose, {b}, ops::Permutation{{1, 0}});
  call.give(emit(call, ops::integer_linear, {a, weight}));
}

// A vector on the left is a row, on the right a column; those dims are removed from the result.
core::Value* general_product(Call& call, core::Value* a, core::Value* b) {
  const bool row = a->type.rank() == 1, column = b->type.rank() == 1;
  if (row) a = unsqueezed(call, a, 0);
  if (column) b = unsqueezed(call, b, 1);
  core::Value* product = matrix_product(call, a, b);
  const auto rank = static_cast<int64_t>(product->type.rank());
  if (row) product = without_axes(call, product, {rank - 2});
  return column ? without_axes(call, product, {static_cast<int64_t>(product->type.rank()) - 1}) : product;
}
void matmul(Call& call) { call.give(general_product(call, call.tensor("self"), call.tensor("other"))); }

// The values, one per key. torch's tracing does not require it: if the sizes are different symbols, each run
// checks it.
core::Value* one_per_key(Call& call, const core::Value* key, core::Value* value) {
  if (key->type.rank() < 2 || value->type.rank() < 2) return value;
  const size_t axis = value->type.rank() - 2;
  const Dim keys = key->type.shape[key->type.rank() - 2], values = value->type.shape[axis];
  if (keys == values || (keys.is_constant() && values.is_constant())) return value;
  ops::add_check(call.graph(), CheckKind::kBounds, compare(Predicate::Kind::kEqual, values, keys),
                 "one value per key");
  return emit(call, ops::slice, {value}, ops::Slice{static_cast<int64_t>(axis), 0, keys, 1});
}

// By its definition, where weights are dropped between the softmax and the product. A row that masks all keys
// is 0.
core::Value* attention_with_dropout(Call& call, const std::array<core::Value*, 4>& given,
                                    const ops::Attention& attention, double p) {
  const auto [query, key, value, mask] = given;
  const bool have_rows = std::ranges::all_of(std::array{query, key, value},
                                             [](const core::Value* x) { return x->type.rank() >= 2; });
  call.require(have_rows, "attention to tensors with fewer than two dims");
  call.require(!attention.grouped, "dropout in attention whose heads are grouped");
  const double width = std::sqrt(static_cast<double>(columns_of(query).constant().value_or(0)));
  call.require(attention.scale != 0 || width > 0, "dropout in attention whose width is not known");
  const double scale = attention.scale != 0 ? attention.scale : 1 / width;
  Term scores = Term(call, product(call, query, turned(call, key))) * scale;
  const Term none = scores.constant(-std::numeric_limits<double>::infinity());
  if (mask != nullptr)
    scores =
        mask->type.dtype == DType::kBool ? Term(call, mask).choose(scores, none) : scores + Term(call, mask);
  if (attention.causal) {
    const Term row(call, unsqueezed(call, counting(call, rows_of(query)), 1)),
        column(call, counting(call, rows_of(key)));
    scores = row.apply(ops::greater_equal, column).choose(scores, none);
  }
  const int64_t last = last_axis(scores);
  const Term largest = scores.reduce(ops::reduce_maximum, {last}, true);
  const Term weights(call, emit(call, ops::softmax, {scores}, ops::Axis{last}));
  const Term safe =
      equal(largest, -std::numeric_limits<double>::infinity()).choose(scores.constant(0), weights);
  const Term kept = random_kept(call, scores.shape(), scores.dtype(), p);
  return product(call, safe * (kept * kept_factor(p)), value);
}

// Scores of masked keys: a bool mask selects keys, any other mask is added.
void attention_with(Call& call, std::string_view mask_name) {
  core::Value *query = call.tensor("query"), *key = call.tensor("key"),
              *value = one_per_key(call, key, call.tensor("value"));
  core::Value* mask = mask_name.empty() ? nullptr : call.optional_tensor(mask_name);
  if (mask != nullptr && mask->type.dtype != DType::kBool)
    mask = converted(call.graph(), mask, query->type.dtype);
  const bool has_groups = call.has("enable_gqa") && call.flag("enable_gqa");
  ops::Attention attention{.scale = call.has("scale") ? call.number("scale") : 0,
                           .causal = call.flag("is_causal")};
  attention.grouped = has_groups && std::min(query->type.rank(), key->type.rank()) >= 3 &&
                      key->type.shape[key->type.rank() - 3] != query->type.shape[query->type.rank() - 3];
  const double p = call.has("dropout_p") ? call.number("dropout_p") : 0;
  if (p != 0) return call.give(0, attention_with_dropout(call, {query, key, value, mask}, attention, p));
  call.give(0, emit(call, ops::attention, {query, key, value, mask}, attention));
}
void attention(Call& call) { attention_with(call, "attn_mask"); }
void attention_with_bias(Call& call) { attention_with(call, "attn_bias"); }
void attention_without_mask(Call& call) { attention_with(call, ""); }

constexpr Converter kContractionConverters[] = {
    {"aten._int_mm.default", integer_mm},
    {"aten._scaled_dot_product_attention_math.default", attention},
    {"aten._scaled_dot_product_efficient_attention.default", attention_with_bias},
    {"aten._scaled_dot_product_flash_attention.default", attention_without_mask},
    {"aten._scaled_dot_product_flash_attention_for_cpu.default", attention},
    {"aten.addbmm.default", addbmm},
    {"aten.addmm.default", addmm},
    {"aten.addmv.default", addmv},
    {"aten.baddbmm.default", baddbmm},
    {"aten.bmm.default", mm},
    {"aten.linear.default", linear},
    {"aten.matmul.default", matmul},
    {"aten.mm.default", mm},
    {"aten.scaled_dot_product_attention.default", attention},
};

}  // namespace

std::span<const Converter> contraction_converters() { return kContractionConverters; }

}  // namespace ingot::core::aten
