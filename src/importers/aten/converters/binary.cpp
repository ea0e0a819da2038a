// SPDX-License-Identifier: Apache-2.0
// Elementwise functions of several tensors or numbers: arithmetic, comparisons, bits, choices.
#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "importers/aten/converters/building.h"
#include "importers/aten/converters/converters.h"
#include "importers/aten/converters/promotion.h"
#include "ops/select.h"

namespace ingot::core::aten {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

core::Value* apply(Call& call, const Op& op, DType dtype, std::string_view a, std::string_view b) {
  return emit(call, op, {operand(call, a, dtype), operand(call, b, dtype)});
}

// Both in the promoted dtype; bools by an operator of their own if arithmetic on them is logic.
template <const Op& kOp, const Op* kOfBools = nullptr>
void arithmetic(Call& call) {
  const DType dtype = promoted(call, {"self", "other"});
  if (dtype == DType::kBool && kOfBools == nullptr) call.refuse("arithmetic on bools");
  call.give(apply(call, dtype == DType::kBool ? *kOfBools : kOp, dtype, "self", "other"));
}
template <const Op& kOp>
void comparison(Call& call) {
  call.give(apply(call, kOp, promoted(call, {"self", "other"}), "self", "other"));
}
template <const Op& kOp>
void logical(Call& call) {
  call.give(apply(call, kOp, DType::kBool, "self", "other"));
}
template <const Op& kOp>
void real_binary(Call& call) {
  call.give(apply(call, kOp, promoted_to_floating(call, {"self", "other"}), "self", "other"));
}

core::Value* scaled(Call& call, core::Value* value, std::string_view factor) {
  if (!call.has(factor)) return value;
  if (!call.is_tensor(factor) && call.known_number(factor) == 1) return value;
  return emit(call, ops::multiply, {value, operand(call, factor, value->type.dtype)});
}
void add_scaled(Call& call, const Op& op, std::string_view a, std::string_view b) {
  const DType dtype = promoted(call, {"self", "other"});
  if (dtype == DType::kBool) {
    if (&op != &ops::add) call.refuse("a difference of bools");
    core::Value* added = operand(call, b, dtype);
    if (call.has("alpha")) added = emit(call, ops::logical_and, {added, operand(call, "alpha", dtype)});
    return call.give(emit(call, ops::logical_or, {operand(call, a, dtype), added}));
  }
  call.give(emit(call, op, {operand(call, a, dtype), scaled(call, operand(call, b, dtype), "alpha")}));
}
void add(Call& call) { add_scaled(call, ops::add, "self", "other"); }
void subtract(Call& call) { add_scaled(call, ops::subtract, "self", "other"); }

void divide_rounded(Call& call) {
  const std::string mode = call.text("rounding_mode");
  if (mode.empty()) return real_binary<ops::divide>(call);
  const DType dtype = promoted(call, {"self", "other"});
  if (mode == "floor") return call.give(apply(call, ops::floor_divide, dtype, "self", "other"));
  core::Value* quotient = apply(call, ops::divide, dtype, "self", "other");
  call.give(is_floating(dtype) ? emit(call, ops::truncate, {quotient}) : quotient);
}

// Exponents that need no logarithm.
core::Value* simple_power(Call& call, core::Value* x, double exponent) {
  const auto times = [&](core::Value* a, core::Value* b) { return emit(call, ops::multiply, {a, b}); };
  if (exponent == 1) return x;
  if (exponent == 2) return times(x, x);
  if (exponent == 3) return times(times(x, x), x);
  if (exponent == 4) return times(times(x, x), times(x, x));
  if (!is_floating(x->type.dtype)) return nullptr;
  if (exponent == 0.5) return emit(call, ops::square_root, {x});
  if (exponent == -0.5) return emit(call, ops::reciprocal_square_root, {x});
  if (exponent == -1) return emit(call, ops::reciprocal, {x});
  return nullptr;
}
void power(Call& call) {
  const DType dtype = promoted(call, {"self", "exponent"});
  core::Value* x = operand(call, "self", dtype);
  core::Value* result = nullptr;
  const auto exponent = call.is_tensor("exponent") ? std::nullopt : call.known_number("exponent");
  if (exponent) result = simple_power(call, x, *exponent);
  call.give(result ? result : emit(call, ops::power, {x, operand(call, "exponent", dtype)}));
}

void choose(Call& call) {
  const DType dtype = promoted(call, {"self", "other"});
  core::Value* condition = converted(call.graph(), call.tensor("condition"), DType::kBool);
  call.give(
      emit(call, ops::select, {condition, operand(call, "self", dtype), operand(call, "other", dtype)}));
}
// Bounds are scalars or tensors; either may be None.
core::Value* bounded(Call& call, core::Value* x, std::string_view name, const Op& op) {
  return call.has(name) ? emit(call, op, {x, operand(call, name, x->type.dtype)}) : x;
}
void clamp_between(Call& call, std::string_view low, std::string_view high) {
  std::vector<std::string_view> names{"self"};
  for (const std::string_view name : {low, high}) {
    if (!name.empty() && call.has(name)) names.push_back(name);
  }
  const DType dtype = promoted(call, names);
  core::Value* x = operand(call, "self", dtype);
  // Bounds are f64: integers that it cannot represent, and sizes, stay operands, as tensors do.
  constexpr double kExact = 9007199254740992;
  const bool numbers = std::ranges::all_of(std::span(names).subspan(1), [&](std::string_view name) {
    const auto bound = call.is_tensor(name) ? std::nullopt : call.known_number(name);
    return bound && (is_floating(dtype) || std::abs(*bound) < kExact);
  });
  if (!numbers) {
    if (!low.empty()) x = bounded(call, x, low, ops::maximum);
    return call.give(high.empty() ? x : bounded(call, x, high, ops::minimum));
  }
  const auto limit = [&](std::string_view name, double none) {
    return !name.empty() && call.has(name) ? call.number(name) : none;
  };
  call.give(emit(call, ops::clamp, {x}, ops::Clamp{limit(low, -kNoLimit), limit(high, kNoLimit)}));
}
void clamp(Call& call) { clamp_between(call, "min", "max"); }

template <const Op& kOp>
void add_combined(Call& call) {
  const DType dtype = promoted(call, {"self", "tensor1", "tensor2"});
  core::Value* combined = apply(call, kOp, dtype, "tensor1", "tensor2");
  call.give(emit(call, ops::add, {operand(call, "self", dtype), scaled(call, combined, "value")}));
}

void hypotenuse(Call& call) {
  const DType dtype = promoted_to_floating(call, {"self", "other"});
  call.give(hypotenuse_of(call, operand(call, "self", dtype), operand(call, "other", dtype)));
}

constexpr Converter kBinaryConverters[] = {
    {"aten.add.Scalar", add},
    {"aten.add.Tensor", add},
    {"aten.addcdiv.default", add_combined<ops::divide>},
    {"aten.addcmul.default", add_combined<ops::multiply>},
    {"aten.atan2.default", real_binary<ops::atan2>},
    {"aten.bitwise_and.Scalar", arithmetic<ops::bitwise_and, &ops::logical_and>},
    {"aten.bitwise_and.Scalar_Tensor", arithmetic<ops::bitwise_and, &ops::logical_and>},
    {"aten.bitwise_and.Tensor", arithmetic<ops::bitwise_and, &ops::logical_and>},
    {"aten.bitwise_left_shift.Scalar_Tensor", arithmetic<ops::shift_left>},
    {"aten.bitwise_left_shift.Tensor", arithmetic<ops::shift_left>},
    {"aten.bitwise_left_shift.Tensor_Scalar", arithmetic<ops::shift_left>},
    {"aten.bitwise_or.Scalar", arithmetic<ops::bitwise_or, &ops::logical_or>},
    {"aten.bitwise_or.Scalar_Tensor", arithmetic<ops::bitwise_or, &ops::logical_or>},
    {"aten.bitwise_or.Tensor", arithmetic<ops::bitwise_or, &ops::logical_or>},
    {"aten.bitwise_right_shift.Scalar_Tensor", arithmetic<ops::shift_right>},
    {"aten.bitwise_right_shift.Tensor", arithmetic<ops::shift_right>},
    {"aten.bitwise_right_shift.Tensor_Scalar", arithmetic<ops::shift_right>},
    {"aten.bitwise_xor.Scalar", arithmetic<ops::bitwise_xor, &ops::logical_xor>},
    {"aten.bitwise_xor.Scalar_Tensor", arithmetic<ops::bitwise_xor, &ops::logical_xor>},
    {"aten.bitwise_xor.Tensor", arithmetic<ops::bitwise_xor, &ops::logical_xor>},
    {"aten.clamp.Tensor", clamp},
    {"aten.clamp.default", clamp},
    {"aten.div.Scalar", real_binary<ops::divide>},
    {"aten.div.Scalar_mode", divide_rounded},
    {"aten.div.Tensor", real_binary<ops::divide>},
    {"aten.div.Tensor_mode", divide_rounded},
    {"aten.eq.Scalar", comparison<ops::equal>},
    {"aten.eq.Tensor", comparison<ops::equal>},
    {"aten.floor_divide.Scalar", arithmetic<ops::floor_divide>},
    {"aten.floor_divide.default", arithmetic<ops::floor_divide>},
    {"aten.fmod.Scalar", arithmetic<ops::remainder>},
    {"aten.fmod.Tensor", arithmetic<ops::remainder>},
    {"aten.ge.Scalar", comparison<ops::greater_equal>},
    {"aten.ge.Tensor", comparison<ops::greater_equal>},
    {"aten.gt.Scalar", comparison<ops::greater>},
    {"aten.gt.Tensor", comparison<ops::greater>},
    {"aten.hypot.default", hypotenuse},
    {"aten.le.Scalar", comparison<ops::less_equal>},
    {"aten.le.Tensor", comparison<ops::less_equal>},
    {"aten.logical_and.default", logical<ops::logical_and>},
    {"aten.logical_or.default", logical<ops::logical_or>},
    {"aten.logical_xor.default", logical<ops::logical_xor>},
    {"aten.lt.Scalar", comparison<ops::less>},
    {"aten.lt.Tensor", comparison<ops::less>},
    {"aten.maximum.default", arithmetic<ops::maximum, &ops::logical_or>},
    {"aten.minimum.default", arithmetic<ops::minimum, &ops::logical_and>},
    {"aten.mul.Scalar", arithmetic<ops::multiply, &ops::logical_and>},
    {"aten.mul.Tensor", arithmetic<ops::multiply, &ops::logical_and>},
    {"aten.ne.Scalar", comparison<ops::not_equal>},
    {"aten.ne.Tensor", comparison<ops::not_equal>},
    {"aten.pow.Scalar", power},
    {"aten.pow.Tensor_Scalar", power},
    {"aten.pow.Tensor_Tensor", power},
    {"aten.remainder.Scalar", arithmetic<ops::modulo>},
    {"aten.remainder.Scalar_Tensor", arithmetic<ops::modulo>},
    {"aten.remainder.Tensor", arithmetic<ops::modulo>},
    {"aten.sub.Scalar", subtract},
    {"aten.sub.Tensor", subtract},
    {"aten.where.Scalar", choose},
    {"aten.where.ScalarOther", choose},
    {"aten.where.ScalarSelf", choose},
    {"aten.where.self", choose},
};

}  // namespace

std::span<const Converter> binary_converters() { return kBinaryConverters; }

}  // namespace ingot::core::aten
