// SPDX-License-Identifier: Apache-2.0
// torch's primitive operators: operands have one dtype and shape, nothing is promoted or broadcast.
#include <numeric>

#include "importers/aten/converters/building.h"
#include "importers/aten/converters/converters.h"
#include "importers/aten/converters/promotion.h"
#include "ops/generate.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/view.h"

namespace ingot::core::aten {
namespace {

template <const Op& kOp>
void prim_of_one(Call& call) {
  call.give(emit(call, kOp, {call.tensor("self")}));
}
template <const Op& kOp>
void prim_of_two(Call& call) {
  const DType dtype = (call.is_tensor("self") ? call.tensor("self") : call.tensor("other"))->type.dtype;
  call.give(emit(call, kOp, {operand(call, "self", dtype), operand(call, "other", dtype)}));
}
template <const Op& kOp>
void prim_reduction(Call& call) {
  core::Value* x = call.tensor("inp");
  if (const auto dtype = call.dtype("output_dtype")) x = converted(call.graph(), x, *dtype);
  const std::vector<int64_t> axes =
      call.has("dims") ? call.axes("dims", x->type.rank()) : all_axes(x->type.rank());
  call.give(emit(call, kOp, {x}, ops::Reduce{axes, false}));
}

// Dim i of the operand is dim axes[i] of the result; all others repeat it.
void broadcast(Call& call) {
  core::Value* x = call.tensor("a");
  const std::vector<int64_t> axes = call.integers("broadcast_dimensions");
  const std::vector<Dim> shape = call.dims("shape");
  call.require(axes.size() == x->type.rank(), "another number of dims than the tensor's");
  Shape spread(shape.size(), 1);
  int64_t last = -1;
  for (size_t i = 0; i < axes.size(); ++i) {
    call.require(axes[i] > last && axes[i] < static_cast<int64_t>(shape.size()), "dims out of order");
    last = axes[i];
    spread[static_cast<size_t>(last)] = x->type.shape[i];
  }
  call.give(expanded(call, reshaped(call, x, spread), shape));
}
void prim_reshape(Call& call) { call.give(reshaped(call, call.tensor("a"), call.dims("shape"))); }
void prim_transpose(Call& call) {
  core::Value* x = call.tensor("a");
  const std::vector<size_t> order = call.axes_in_order("permutation", x->type.rank());
  call.require(order.size() == x->type.rank(), "another number of dims than the tensor's");
  call.give(transposed(call, x, std::vector<int64_t>(order.begin(), order.end())));
}
void prim_squeeze(Call& call) {
  core::Value* x = call.tensor("a");
  std::vector<int64_t> axes;
  for (const size_t axis : call.axes_in_order("dimensions", x->type.rank()))
    axes.push_back(static_cast<int64_t>(axis));
  call.give(without_axes(call, x, axes));
}
void prim_where(Call& call) {
  core::Value *a = call.tensor("a"), *b = call.tensor("b");
  call.give(emit(call, ops::select, {converted(call.graph(), call.tensor("pred"), DType::kBool), a, b}));
}
void prim_iota(Call& call) {
  const DType dtype = call.dtype("dtype").value_or(DType::kI64);
  const ops::Iota iota{call.dim("start"), call.dim("step"), call.dim("length"), DType::kI64};
  call.give(converted(call.graph(), emit(call, ops::iota, {}, iota), dtype));
}
void prim_full(Call& call) {
  call.give(filled(call, call.dims("shape"), call.number("fill_value"), *call.dtype("dtype")));
}
void unchanged(Call& call) { call.give(call.tensor(call.has("a") ? "a" : "self")); }

constexpr Converter kPrimsConverters[] = {
    {"prims.abs.default", prim_of_one<ops::absolute>},
    {"prims.acos.default", prim_of_one<ops::acos>},
    {"prims.acosh.default", prim_of_one<ops::acosh>},
    {"prims.add.default", prim_of_two<ops::add>},
    {"prims.amax.default", prim_reduction<ops::reduce_maximum>},
    {"prims.amin.default", prim_reduction<ops::reduce_minimum>},
    {"prims.asin.default", prim_of_one<ops::asin>},
    {"prims.asinh.default", prim_of_one<ops::asinh>},
    {"prims.atan.default", prim_of_one<ops::atan>},
    {"prims.atan2.default", prim_of_two<ops::atan2>},
    {"prims.atanh.default", prim_of_one<ops::atanh>},
    {"prims.bitwise_and.default", prim_of_two<ops::bitwise_and>},
    {"prims.bitwise_not.default", prim_of_one<ops::bitwise_not>},
    {"prims.bitwise_or.default", prim_of_two<ops::bitwise_or>},
    {"prims.bitwise_xor.default", prim_of_two<ops::bitwise_xor>},
    {"prims.broadcast_in_dim.default", broadcast},
    {"prims.ceil.default", prim_of_one<ops::ceil>},
    {"prims.clone.default", unchanged},
    {"prims.cos.default", prim_of_one<ops::cos>},
    {"prims.cosh.default", prim_of_one<ops::cosh>},
    {"prims.div.default", prim_of_two<ops::divide>},
    {"prims.eq.default", prim_of_two<ops::equal>},
    {"prims.erf.default", prim_of_one<ops::erf>},
    {"prims.erfc.default", prim_of_one<ops::erfc>},
    {"prims.exp.default", prim_of_one<ops::exp>},
    {"prims.exp2.default", prim_of_one<ops::exp2>},
    {"prims.expm1.default", prim_of_one<ops::expm1>},
    {"prims.floor.default", prim_of_one<ops::floor>},
    {"prims.full.default", prim_full},
    {"prims.ge.default", prim_of_two<ops::greater_equal>},
    {"prims.gt.default", prim_of_two<ops::greater>},
    {"prims.iota.default", prim_iota},
    {"prims.le.default", prim_of_two<ops::less_equal>},
    {"prims.log.default", prim_of_one<ops::log>},
    {"prims.log10.default", prim_of_one<ops::log10>},
    {"prims.log1p.default", prim_of_one<ops::log1p>},
    {"prims.log2.default", prim_of_one<ops::log2>},
    {"prims.lt.default", prim_of_two<ops::less>},
    {"prims.maximum.default", prim_of_two<ops::maximum>},
    {"prims.minimum.default", prim_of_two<ops::minimum>},
    {"prims.mul.default", prim_of_two<ops::multiply>},
    {"prims.ne.default", prim_of_two<ops::not_equal>},
    {"prims.neg.default", prim_of_one<ops::negate>},
    {"prims.pow.default", prim_of_two<ops::power>},
    {"prims.prod.default", prim_reduction<ops::product>},
    {"prims.reciprocal.default", prim_of_one<ops::reciprocal>},
    {"prims.reshape.default", prim_reshape},
    {"prims.round.default", prim_of_one<ops::round>},
    {"prims.rsqrt.default", prim_of_one<ops::reciprocal_square_root>},
    {"prims.sign.default", prim_of_one<ops::sign>},
    {"prims.sin.default", prim_of_one<ops::sin>},
    {"prims.sinh.default", prim_of_one<ops::sinh>},
    {"prims.sqrt.default", prim_of_one<ops::square_root>},
    {"prims.squeeze.default", prim_squeeze},
    {"prims.sub.default", prim_of_two<ops::subtract>},
    {"prims.sum.default", prim_reduction<ops::sum>},
    {"prims.tan.default", prim_of_one<ops::tan>},
    {"prims.tanh.default", prim_of_one<ops::tanh>},
    {"prims.transpose.default", prim_transpose},
    {"prims.trunc.default", prim_of_one<ops::truncate>},
    {"prims.view_of.default", unchanged},
    {"prims.where.default", prim_where},
};

}  // namespace

std::span<const Converter> prims_converters() { return kPrimsConverters; }

}  // namespace ingot::core::aten
