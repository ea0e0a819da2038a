// SPDX-License-Identifier: Apache-2.0
// Elementwise functions of one tensor.

#include "importers/aten/converters/building.h"
#include "importers/aten/converters/converters.h"
#include "importers/aten/converters/promotion.h"
#include "ops/activation.h"
#include "ops/select.h"

namespace ingot::core::aten {
namespace {

template <const Op& kOp>
void same(Call& call) {
  call.give(emit(call, kOp, {call.tensor("self")}));
}
// Integers become f32.
template <const Op& kOp>
void real(Call& call) {
  call.give(emit(call, kOp, {floating(call, call.tensor("self"))}));
}
// Integers need no rounding.
template <const Op& kOp>
void rounding(Call& call) {
  core::Value* x = call.tensor("self");
  call.give(is_floating(x->type.dtype) ? emit(call, kOp, {x}) : x);
}
template <const Op& kOp>
void predicate(Call& call) {
  core::Value* x = call.tensor("self");
  call.give(is_floating(x->type.dtype) ? emit(call, kOp, {x}) : filled(call, x->type.shape, 0, DType::kBool));
}

void logical_not(Call& call) {
  call.give(emit(call, ops::logical_not, {converted(call.graph(), call.tensor("self"), DType::kBool)}));
}
void gelu(Call& call) {
  call.give(emit(call, ops::gelu, {call.tensor("self")}, ops::Gelu{call.text("approximate") == "tanh"}));
}
void elu(Call& call) {
  const ops::Elu elu{call.number("alpha"), call.number("scale"), call.number("input_scale")};
  call.give(emit(call, ops::elu, {call.tensor("self")}, elu));
}
void leaky_relu(Call& call) {
  call.give(
      emit(call, ops::leaky_relu, {call.tensor("self")}, ops::LeakyRelu{call.number("negative_slope")}));
}
void softplus(Call& call) {
  call.give(emit(call, ops::softplus, {call.tensor("self")},
                 ops::Softplus{call.number("beta"), call.number("threshold")}));
}

core::Value* is_negative(Call& call, core::Value* x) {
  if (is_floating(x->type.dtype)) return emit(call, ops::sign_bit, {x});
  return emit(call, ops::less, {x, scalar(call.graph(), 0, x->type.dtype)});
}
void sign_bit(Call& call) { call.give(is_negative(call, call.tensor("self"))); }
void copy_sign(Call& call) {
  const DType dtype = promoted_to_floating(call, {"self", "other"});
  core::Value* size = emit(call, ops::absolute, {operand(call, "self", dtype)});
  core::Value* sign = is_negative(call, operand(call, "other", dtype));
  call.give(emit(call, ops::select, {sign, emit(call, ops::negate, {size}), size}));
}

constexpr Converter kElementwiseConverters[] = {
    {"aten.abs.default", same<ops::absolute>},
    {"aten.acos.default", real<ops::acos>},
    {"aten.acosh.default", real<ops::acosh>},
    {"aten.asin.default", real<ops::asin>},
    {"aten.asinh.default", real<ops::asinh>},
    {"aten.atan.default", real<ops::atan>},
    {"aten.atanh.default", real<ops::atanh>},
    {"aten.bitwise_not.default", same<ops::bitwise_not>},
    {"aten.ceil.default", rounding<ops::ceil>},
    {"aten.copysign.Scalar", copy_sign},
    {"aten.copysign.Tensor", copy_sign},
    {"aten.cos.default", real<ops::cos>},
    {"aten.cosh.default", real<ops::cosh>},
    {"aten.elu.default", elu},
    {"aten.erf.default", real<ops::erf>},
    {"aten.erfc.default", real<ops::erfc>},
    {"aten.exp.default", real<ops::exp>},
    {"aten.exp2.default", real<ops::exp2>},
    {"aten.expm1.default", real<ops::expm1>},
    {"aten.floor.default", rounding<ops::floor>},
    {"aten.gelu.default", gelu},
    {"aten.hardsigmoid.default", same<ops::hard_sigmoid>},
    {"aten.hardswish.default", same<ops::hard_swish>},
    {"aten.isinf.default", predicate<ops::is_infinite>},
    {"aten.isnan.default", predicate<ops::is_nan>},
    {"aten.leaky_relu.default", leaky_relu},
    {"aten.log.default", real<ops::log>},
    {"aten.log10.default", real<ops::log10>},
    {"aten.log1p.default", real<ops::log1p>},
    {"aten.log2.default", real<ops::log2>},
    {"aten.log_sigmoid.default", same<ops::log_sigmoid>},
    {"aten.logical_not.default", logical_not},
    {"aten.mish.default", same<ops::mish>},
    {"aten.neg.default", same<ops::negate>},
    {"aten.reciprocal.default", real<ops::reciprocal>},
    {"aten.relu.default", same<ops::relu>},
    {"aten.round.default", rounding<ops::round>},
    {"aten.rsqrt.default", real<ops::reciprocal_square_root>},
    {"aten.sgn.default", same<ops::sign>},
    {"aten.sigmoid.default", real<ops::sigmoid>},
    {"aten.sign.default", same<ops::sign>},
    {"aten.signbit.default", sign_bit},
    {"aten.silu.default", same<ops::silu>},
    {"aten.sin.default", real<ops::sin>},
    {"aten.sinh.default", real<ops::sinh>},
    {"aten.softplus.default", softplus},
    {"aten.sqrt.default", real<ops::square_root>},
    {"aten.tan.default", real<ops::tan>},
    {"aten.tanh.default", real<ops::tanh>},
    {"aten.trunc.default", rounding<ops::truncate>},
};

}  // namespace

std::span<const Converter> elementwise_converters() { return kElementwiseConverters; }

}  // namespace ingot::core::aten
