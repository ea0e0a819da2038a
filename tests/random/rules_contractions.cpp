// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/attention.h"
#include "ops/convolution.h"
#include "ops/ops.h"
#include "ops/view.h"
#include "tests/random/rules.h"

namespace ingot::core::random_graphs {
namespace {

DType random_float(Maker& maker) {
  constexpr DType kFloats[] = {DType::kF32, DType::kF32, DType::kF32, DType::kF32,
                               DType::kF64, DType::kF16, DType::kBF16};
  return pick(maker.random(), kFloats);
}

// A floating value whose last dim has a fixed size.
Value* rows(Maker& maker) {
  Value* x = maker.any(1);
  if (!is_floating(x->type.dtype)) x = maker.as(x, random_float(maker));
  if (x == nullptr || !x->type.shape.back().is_constant()) {
    Shape shape = maker.random_shape(static_cast<size_t>(maker.number(1, 3)));
    shape.back() = maker.number(1, 40);
    return maker.partner({random_float(maker), shape, {}});
  }
  return x;
}

bool add_linear(Maker& maker) {
  Value* x = rows(maker);
  if (x == nullptr) return false;
  const DType dtype = x->type.dtype;
  const Dim width = maker.number(1, 40);
  std::vector<Value*> operands = {x, maker.partner({dtype, {width, x->type.shape.back()}, {}})};
  operands.push_back(maker.chance(0.5) ? maker.partner({dtype, {width}, {}}) : nullptr);
  return maker.add(ops::linear, std::move(operands)) != nullptr;
}

bool add_matmul(Maker& maker) {
  Value* x = rows(maker);
  if (x == nullptr || x->type.rank() < 2) return false;
  TensorType type = x->type;
  if (maker.chance(0.3)) type.shape.erase(type.shape.begin(), type.shape.end() - 2);
  type.shape[type.rank() - 2] = x->type.shape.back();
  type.shape.back() = maker.chance(0.7) ? Dim(maker.number(1, 40)) : maker.random_dim();
  Value* y = maker.chance(0.5) ? maker.transposed_source(type) : maker.partner(type);
  return maker.add(ops::matmul, {x, y}) != nullptr;
}

bool add_convolution(Maker& maker) {
  const int64_t groups = maker.chance(0.3) ? maker.number(2, 4) : 1;
  const bool depthwise = maker.chance(0.3);
  const int64_t group_inputs = depthwise ? 1 : maker.number(1, 8), outputs = groups * maker.number(1, 12);
  const int64_t window = pick(maker.random(), std::array{1, 3, 3, 2});
  const DType dtype = random_float(maker);
  Shape image = {maker.random_dim(), groups * group_inputs, maker.number(3, 8), maker.number(3, 8)};
  if (maker.most(image[0]) > 4) image[0] = 2;
  const int64_t stride = maker.number(1, 2), padding = maker.number(0, 1),
                dilation = maker.chance(0.2) ? 2 : 1;
  const ops::Convolution attributes{{stride, stride}, {padding, padding}, {dilation, dilation}, groups};
  std::vector<Value*> operands = {maker.partner({dtype, image, {}}),
                                  maker.partner({dtype, {outputs, group_inputs, window, window}, {}})};
  operands.push_back(maker.chance(0.5) ? maker.partner({dtype, {outputs}, {}}) : nullptr);
  return maker.add(ops::convolution, std::move(operands), attributes) != nullptr;
}

// Queries, keys and values are ordinary numbers: whether an infinite value counts where its key is masked is
// not promised.
// Queries, keys and values as [batch, heads, length, width], often split out of [batch, length, heads,
// width].
Value* split_heads(Maker& maker, DType dtype, const Dim& batch, const Dim& heads, const Dim& length,
                   const Dim& width) {
  if (maker.chance(0.3)) return maker.source({dtype, {batch, heads, length, width}, {}}, {});
  Value* joined = maker.source({dtype, {batch, length, heads, width}, {}}, {});
  const Node* node = maker.add(ops::transpose, {joined}, ops::Permutation{{0, 2, 1, 3}});
  return node == nullptr ? nullptr : node->results[0];
}

bool add_attention(Maker& maker) {
  const DType dtype = random_float(maker);
  const Dim batch = maker.number(1, 2), queries = maker.random_dim(), keys = maker.random_dim();
  const int64_t repeat = maker.chance(0.4) ? 2 : 1, groups = maker.number(1, 2),
                width = 4 * maker.number(1, 4);
  ops::Attention attributes{.grouped = repeat > 1};
  attributes.causal = queries == keys && maker.chance(0.4);
  std::vector<Value*> operands = {split_heads(maker, dtype, batch, groups * repeat, queries, width),
                                  split_heads(maker, dtype, batch, groups, keys, width),
                                  split_heads(maker, dtype, batch, groups, keys, width)};
  const bool masked = !attributes.causal && maker.chance(0.4);
  operands.push_back(masked ? maker.source({dtype, {queries, keys}, {}}, {}) : nullptr);
  return maker.add(ops::attention, std::move(operands), attributes) != nullptr;
}

}  // namespace

bool add_contraction(Maker& maker) {
  switch (maker.number(0, 6)) {
    case 0:
    case 1:
      return add_linear(maker);
    case 2:
    case 3:
      return add_matmul(maker);
    case 4:
    case 5:
      return add_convolution(maker);
    default:
      return add_attention(maker);
  }
}

Case make_case(uint64_t seed) {
  using Rule = bool (*)(Maker&);
  constexpr Rule kRules[] = {
      add_elementwise, add_elementwise, add_elementwise, add_elementwise, add_elementwise, add_elementwise,
      add_view,        add_view,        add_view,        add_in_place,    add_in_place,    add_along_axis,
      add_along_axis,  add_indexed,     add_contraction, add_contraction, add_sample,      add_long_rows,
      add_number,      add_narrowed,    add_sample,      add_found_part};
  Maker maker(seed);
  const int64_t wanted = maker.number(2, 12);
  int64_t made = 0;
  for (int tries = 0; made < wanted && tries < 60; ++tries)
    made += pick(maker.random(), kRules)(maker) ? 1 : 0;
  return maker.finish();
}

}  // namespace ingot::core::random_graphs
