// SPDX-License-Identifier: Apache-2.0
// Functions composed of other functions.
#include <cmath>
#include <limits>

#include "importers/aten/converters/converters.h"
#include "importers/aten/converters/terms.h"
#include "ops/select.h"

namespace ingot::core::aten {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

template <Term (*kFormula)(const Term&)>
void of_one(Call& call) {
  call.give(kFormula(real_term(call, "self")));
}
// For two tensors, or a tensor and a scalar, in the promoted dtype.
template <Term (*kFormula)(const Term&, const Term&)>
void of_two(Call& call) {
  const DType dtype = promoted_to_floating(call, {"self", "other"});
  call.give(kFormula({call, operand(call, "self", dtype)}, {call, operand(call, "other", dtype)}));
}

Term natural_log(const Term& x) { return x.apply(ops::log); }
Term is_nan(const Term& x) { return x.apply(ops::is_nan); }

// 0 log(y) is 0, unless y is NaN.
Term x_log(const Term& x, const Term& y, const Op& log) {
  const Term value = x * y.apply(log);
  return is_nan(y).choose(y, equal(x, 0).choose(x.constant(0), value));
}
Term x_log_y(const Term& x, const Term& y) { return x_log(x, y, ops::log); }
Term x_log1p_y(const Term& x, const Term& y) { return x_log(x, y, ops::log1p); }
Term entropy(const Term& x) {
  const Term inside =
      (x > 0).choose(-(x * natural_log(x)), equal(x, 0).choose(x.constant(0), x.constant(-kInfinity)));
  return is_nan(x).choose(x, inside);
}
Term sinc(const Term& x) {
  const Term angle = x * M_PI;
  return equal(x, 0).choose(x.constant(1), angle.apply(ops::sin) / angle);
}
Term normal_distribution(const Term& x) { return (x * -M_SQRT1_2).apply(ops::erfc) * 0.5; }
Term fraction(const Term& x) { return x - x.apply(ops::truncate); }
Term to_radians(const Term& x) { return x * (M_PI / 180); }
Term to_degrees(const Term& x) { return x * (180 / M_PI); }

// Shifted by the larger one; for equal infinities, that one.
Term log_add_exp(const Term& a, const Term& b) {
  const Term large = a.apply(ops::maximum, b), distance = -(a - b).apply(ops::absolute);
  const Term sum = large + distance.apply(ops::exp).apply(ops::log1p);
  return (equal(a - b, 0) || is_nan(a - b)).choose(large + std::log(2.0), sum);
}
Term log_add_exp2(const Term& a, const Term& b) { return log_add_exp(a * M_LN2, b * M_LN2) * M_LOG2E; }

// By its definition, one sum per element: the work grows with the square of the dim.
void running_log_sum_exp(Call& call) {
  const Term given = operand_term(call, "self");
  if (given.shape().empty()) return call.give(given);
  constexpr int64_t kLongest = 2048;
  const size_t axis = call.axis("dim", given.shape().size()), last = given.shape().size() - 1;
  const Dim size = given.shape()[axis];
  call.require(range_of(size, call.graph().symbols).max <= kLongest, "a dim of more than 2048 elements");
  const Term line(call, unsqueezed(call, swapped(call, given, axis, last), last));
  const Term row(call, unsqueezed(call, counting(call, size), 1)), column(call, counting(call, size));
  const Term seen = row.apply(ops::greater_equal, column).choose(line, line.constant(-kInfinity));
  const Term sums = seen.reduce(ops::log_sum_exp, {static_cast<int64_t>(last) + 1});
  call.give(swapped(call, sums, axis, last));
}

void logit(Call& call) {
  Term x = real_term(call, "self");
  if (call.has("eps")) {
    const double epsilon = call.number("eps");
    x = {call, emit(call, ops::clamp, {x}, ops::Clamp{epsilon, 1 - epsilon})};
  }
  call.give(natural_log(x / (1 - x)));
}
void heaviside(Call& call) {
  const DType dtype = promoted(call, {"self", "values"});
  const Term x(call, operand(call, "self", dtype)), at_zero(call, operand(call, "values", dtype));
  const Term step = (x > 0).to(dtype == DType::kBool ? DType::kU8 : dtype);
  call.give(equal(x, 0).choose(at_zero, step.to(dtype)));
}
void is_close(Call& call) {
  const DType dtype = promoted(call, {"self", "other"});
  const Term a(call, operand(call, "self", dtype)), b(call, operand(call, "other", dtype));
  const Term same(call, emit(call, ops::equal, {a, b}));
  const bool real = is_floating(dtype);
  const DType exact = real ? dtype : DType::kF64;
  const Term x = a.to(exact), y = b.to(exact);
  const Term distance = (x - y).apply(ops::absolute);
  const Term allowed = y.apply(ops::absolute) * call.number("rtol") + call.number("atol");
  const Term near =
      Term(call, emit(call, ops::less_equal, {distance, allowed})) && distance < distance.constant(kInfinity);
  Term close = same || near;
  if (real && call.flag("equal_nan")) close = close || (is_nan(a) && is_nan(b));
  call.give(close);
}
template <double kSign>
void is_infinity(Call& call) {
  const Term x = operand_term(call, "self");
  call.give(is_floating(x.dtype()) ? equal(x, kSign * kInfinity)
                                   : Term(call, filled(call, x.shape(), 0, DType::kBool)));
}
double largest(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return 65504;
    case DType::kBF16:
      return 0x1.fep127;
    case DType::kF32:
      return std::numeric_limits<float>::max();
    default:
      return std::numeric_limits<double>::max();
  }
}
void without_nan(Call& call) {
  const Term x = operand_term(call, "self");
  if (!is_floating(x.dtype())) return call.give(x);
  const double most = largest(x.dtype());
  const auto given = [&](const char* name, double none) { return call.has(name) ? call.number(name) : none; };
  Term result = is_nan(x).choose(x.constant(given("nan", 0)), x);
  result = equal(x, kInfinity).choose(x.constant(given("posinf", most)), result);
  call.give(equal(x, -kInfinity).choose(x.constant(given("neginf", -most)), result));
}
void power_in_f64(Call& call) {
  const auto wide = [&](std::string_view name) { return operand(call, name, DType::kF64); };
  call.give(emit(call, ops::power, {wide("self"), wide("exponent")}));
}
void times_power_of_two(Call& call) {
  const DType dtype = promoted_to_floating(call, {"self", "other"});
  const Term x(call, operand(call, "self", dtype)), exponent(call, operand(call, "other", dtype));
  call.give(x * exponent.constant(2).apply(ops::power, exponent));
}

// Zero within [-lambd, lambd]; propagates NaN.
void soft_shrink(Call& call) {
  const Term x = operand_term(call, "self"), size = x.apply(ops::absolute);
  const double lambda = call.number("lambd");
  const Term moved = x - x.apply(ops::sign) * lambda;
  call.give((size > lambda).choose(moved, x * 0));
}
void hard_shrink(Call& call) {
  const Term x = operand_term(call, "self");
  call.give((x.apply(ops::absolute) <= call.number("lambd")).choose(x.constant(0), x));
}
void threshold(Call& call) {
  const Term x = operand_term(call, "self");
  call.give((x <= call.number("threshold")).choose({call, operand(call, "value", x.dtype())}, x));
}

constexpr Converter kSpecialConverters[] = {
    {"aten.deg2rad.default", of_one<to_radians>, kComposed},
    {"aten.float_power.Scalar", power_in_f64, kComposed},
    {"aten.float_power.Tensor_Scalar", power_in_f64, kComposed},
    {"aten.float_power.Tensor_Tensor", power_in_f64, kComposed},
    {"aten.frac.default", of_one<fraction>, kComposed},
    {"aten.hardshrink.default", hard_shrink, kComposed},
    {"aten.heaviside.default", heaviside, kComposed},
    {"aten.isclose.default", is_close, kComposed},
    {"aten.isneginf.default", is_infinity<-1.0>, kComposed},
    {"aten.isposinf.default", is_infinity<1.0>, kComposed},
    {"aten.ldexp.Tensor", times_power_of_two, kComposed},
    {"aten.logaddexp.default", of_two<log_add_exp>, kComposed},
    {"aten.logaddexp2.default", of_two<log_add_exp2>, kComposed},
    {"aten.logcumsumexp.default", running_log_sum_exp},
    {"aten.logit.default", logit, kComposed},
    {"aten.nan_to_num.default", without_nan, kComposed},
    {"aten.rad2deg.default", of_one<to_degrees>, kComposed},
    {"aten.sinc.default", of_one<sinc>, kComposed},
    {"aten.softshrink.default", soft_shrink, kComposed},
    {"aten.special_entr.default", of_one<entropy>, kComposed},
    {"aten.special_logit.default", logit, kComposed},
    {"aten.special_ndtr.default", of_one<normal_distribution>, kComposed},
    {"aten.special_sinc.default", of_one<sinc>, kComposed},
    {"aten.special_xlog1py.default", of_two<x_log1p_y>, kComposed},
    {"aten.special_xlog1py.other_scalar", of_two<x_log1p_y>, kComposed},
    {"aten.special_xlog1py.self_scalar", of_two<x_log1p_y>, kComposed},
    {"aten.special_xlogy.default", of_two<x_log_y>, kComposed},
    {"aten.special_xlogy.other_scalar", of_two<x_log_y>, kComposed},
    {"aten.special_xlogy.self_scalar", of_two<x_log_y>, kComposed},
    {"aten.threshold.default", threshold, kComposed},
    {"aten.xlogy.Scalar_Other", of_two<x_log_y>, kComposed},
    {"aten.xlogy.Scalar_Self", of_two<x_log_y>, kComposed},
    {"aten.xlogy.Tensor", of_two<x_log_y>, kComposed},
};

}  // namespace

std::span<const Converter> special_converters() { return kSpecialConverters; }

}  // namespace ingot::core::aten
