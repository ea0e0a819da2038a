// SPDX-License-Identifier: Apache-2.0
// Elementwise functions of one tensor.
#include <cmath>

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

void round_decimals(Call& call) {
  core::Value* x = call.tensor("self");
  core::Value* scale =
      scalar(call.graph(), std::pow(10.0, static_cast<double>(call.integer("decimals"))), x->type.dtype);
  core::Value* rounded = emit(call, ops::round, {emit(call, ops::multiply, {x, scale})});
  call.give(emit(call, ops::divide, {rounded, scale}));
}
void is_finite(Call& call) {
  core::Value* x = call.tensor("self");
  if (!is_floating(x->type.dtype)) return call.give(filled(call, x->type.shape, 1, DType::kBool));
  core::Value* bad =
      emit(call, ops::logical_or, {emit(call, ops::is_nan, {x}), emit(call, ops::is_infinite, {x})});
  call.give(emit(call, ops::logical_not, {bad}));
}
void logical_not(Call& call) {
  call.give(emit(call, ops::logical_not, {converted(call.graph(), call.tensor("self"), DType::kBool)}));
}
void square(Call& call) {
  core::Value* x = call.tensor("self");
  call.give(emit(call, ops::multiply, {x, x}));
}
void gelu(Call& call) {
  call.give(emit(call, ops::gelu, {call.tensor("self")}, ops::Gelu{call.text("approximate") == "tanh"}));
}
void elu(Call& call) {
  const ops::Elu elu{call.number("alpha"), call.number("scale"), call.number("input_scale")};
  call.give(emit(call, ops::elu, {call.tensor("self")}, elu));
}
void selu(Call& call) {
  call.give(emit(call, ops::elu, {call.tensor("self")}, ops::Elu{1.6732632423543772, 1.0507009873554805, 1}));
}
void celu(Call& call) {
  const double alpha = call.number("alpha");
  call.give(emit(call, ops::elu, {call.tensor("self")}, ops::Elu{alpha, 1, 1 / alpha}));
}
void leaky_relu(Call& call) {
  call.give(
      emit(call, ops::leaky_relu, {call.tensor("self")}, ops::LeakyRelu{call.number("negative_slope")}));
}
void softplus(Call& call) {
  call.give(emit(call, ops::softplus, {call.tensor("self")},
                 ops::Softplus{call.number("beta"), call.number("threshold")}));
}
void prelu(Call& call) {
  core::Value *x = call.tensor("self"), *slope = call.tensor("weight");
  if (slope->type.rank() != x->type.rank()) {  // one for all, or one per channel
    Shape shape(x->type.rank(), 1);
    if (shape.size() > 1) shape[1] = element_count(slope->type);
    slope = reshaped(call, slope, std::move(shape));
  }
  core::Value* positive = emit(call, ops::greater, {x, scalar(call.graph(), 0, x->type.dtype)});
  call.give(emit(call, ops::select, {positive, x, emit(call, ops::multiply, {x, slope})}));
}
void softsign(Call& call) {
  core::Value* x = call.tensor("self");
  core::Value* one = scalar(call.graph(), 1, x->type.dtype);
  call.give(emit(call, ops::divide, {x, emit(call, ops::add, {one, emit(call, ops::absolute, {x})})}));
}
void relu6(Call& call) { call.give(emit(call, ops::clamp, {call.tensor("self")}, ops::Clamp{0, 6})); }
void hardtanh(Call& call) {
  call.give(emit(call, ops::clamp, {call.tensor("self")},
                 ops::Clamp{call.number("min_val"), call.number("max_val")}));
}
void glu(Call& call) {
  core::Value* x = call.tensor("self");
  const size_t axis = call.axis("dim", x->type.rank());
  const Dim size = extent(call, x, axis), half = floor_divide(size, 2);
  core::Value* gate = emit(call, ops::sigmoid, {sliced(call, x, axis, half, size)});
  call.give(emit(call, ops::multiply, {sliced(call, x, axis, 0, half), gate}));
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
void angle(Call& call) {
  core::Value* x = floating(call, call.tensor("self"));
  const auto number = [&](double value) { return scalar(call.graph(), value, x->type.dtype); };
  core::Value* turned =
      emit(call, ops::select, {emit(call, ops::less, {x, number(0)}), number(M_PI), number(0)});
  call.give(emit(call, ops::select, {emit(call, ops::is_nan, {x}), x, turned}));
}

constexpr Converter kElementwiseConverters[] = {
    {"aten._prelu_kernel.default", prelu},
    {"aten.abs.default", same<ops::absolute>},
    {"aten.absolute.default", same<ops::absolute>},
    {"aten.acos.default", real<ops::acos>},
    {"aten.acosh.default", real<ops::acosh>},
    {"aten.angle.default", angle},
    {"aten.arccos.default", real<ops::acos>},
    {"aten.arccosh.default", real<ops::acosh>},
    {"aten.arcsin.default", real<ops::asin>},
    {"aten.arcsinh.default", real<ops::asinh>},
    {"aten.arctan.default", real<ops::atan>},
    {"aten.arctanh.default", real<ops::atanh>},
    {"aten.asin.default", real<ops::asin>},
    {"aten.asinh.default", real<ops::asinh>},
    {"aten.atan.default", real<ops::atan>},
    {"aten.atanh.default", real<ops::atanh>},
    {"aten.bitwise_not.default", same<ops::bitwise_not>},
    {"aten.ceil.default", rounding<ops::ceil>},
    {"aten.celu.default", celu},
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
    {"aten.fix.default", rounding<ops::truncate>},
    {"aten.floor.default", rounding<ops::floor>},
    {"aten.gelu.default", gelu},
    {"aten.glu.default", glu},
    {"aten.hardsigmoid.default", same<ops::hard_sigmoid>},
    {"aten.hardswish.default", same<ops::hard_swish>},
    {"aten.hardtanh.default", hardtanh},
    {"aten.isfinite.default", is_finite},
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
    {"aten.negative.default", same<ops::negate>},
    {"aten.prelu.default", prelu},
    {"aten.reciprocal.default", real<ops::reciprocal>},
    {"aten.relu.default", same<ops::relu>},
    {"aten.relu6.default", relu6},
    {"aten.round.decimals", round_decimals},
    {"aten.round.default", rounding<ops::round>},
    {"aten.rsqrt.default", real<ops::reciprocal_square_root>},
    {"aten.selu.default", selu},
    {"aten.sgn.default", same<ops::sign>},
    {"aten.sigmoid.default", real<ops::sigmoid>},
    {"aten.sign.default", same<ops::sign>},
    {"aten.signbit.default", sign_bit},
    {"aten.silu.default", same<ops::silu>},
    {"aten.sin.default", real<ops::sin>},
    {"aten.sinh.default", real<ops::sinh>},
    {"aten.softplus.default", softplus},
    {"aten.softsign.default", softsign},
    {"aten.special_erf.default", real<ops::erf>},
    {"aten.special_erfc.default", real<ops::erfc>},
    {"aten.special_exp2.default", real<ops::exp2>},
    {"aten.special_expit.default", real<ops::sigmoid>},
    {"aten.special_expm1.default", real<ops::expm1>},
    {"aten.special_log1p.default", real<ops::log1p>},
    {"aten.special_round.default", rounding<ops::round>},
    {"aten.sqrt.default", real<ops::square_root>},
    {"aten.square.default", square},
    {"aten.tan.default", real<ops::tan>},
    {"aten.tanh.default", real<ops::tanh>},
    {"aten.trunc.default", rounding<ops::truncate>},
};

}  // namespace

std::span<const Converter> elementwise_converters() { return kElementwiseConverters; }

}  // namespace ingot::core::aten
