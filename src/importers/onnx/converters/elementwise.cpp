// SPDX-License-Identifier: Apache-2.0
// Operators of one element of each operand.
#include <algorithm>
#include <array>

#include "importers/onnx/converters/converters.h"
#include "importers/onnx/float8.h"
#include "importers/onnx/tensors.h"
#include "ops/select.h"

namespace ingot::core::onnx {
namespace {

void convert_unary(Call& call) { call.give(call.graph().call(call.op(), {call.tensor(0)})); }

void convert_binary(Call& call) {
  Value *a = call.tensor(0), *b = call.tensor(1);
  broadcast(a->type.shape, b->type.shape);
  call.give(call.graph().call(call.op(), {a, b}));
}

// Max, Min and Sum: any number of operands.
void convert_variadic(Call& call) {
  Value* total = nullptr;
  for (Value* value : call.tensors()) {
    if (total != nullptr) broadcast(total->type.shape, value->type.shape);
    total = total == nullptr ? value : call.graph().call(call.op(), {total, value});
  }
  call.give(total);
}

void convert_mean(Call& call) {
  const std::vector<Value*> values = call.tensors();
  Term total(call.graph(), values[0]);
  for (size_t i = 1; i < values.size(); ++i) total = total + Term(call.graph(), values[i]);
  call.give(total / static_cast<double>(values.size()));
}

void convert_mod(Call& call) {
  const bool keeps_sign = call.flag("fmod");
  Value *a = call.tensor(0), *b = call.tensor(1);
  if (!keeps_sign && is_floating(a->type.dtype)) refuse_node("fmod must be 1 for floating-point operands");
  broadcast(a->type.shape, b->type.shape);
  call.give(call.graph().call(keeps_sign ? ops::remainder : ops::modulo, {a, b}));
}

// The result has the dtype of the base, whatever the exponent's is.
void convert_pow(Call& call) {
  Graph& graph = call.graph();
  Value *base = call.tensor(0), *exponent = call.tensor(1);
  broadcast(base->type.shape, exponent->type.shape);
  const DType dtype = base->type.dtype;
  const bool is_real = !is_floating(dtype) && is_floating(exponent->type.dtype);
  const DType computed = is_real ? DType::kF64 : dtype;
  Value* power =
      graph.call(ops::power, {converted(graph, base, computed), converted(graph, exponent, computed)});
  call.give(converted(graph, power, dtype));
}

void convert_shift(Call& call) {
  const std::string direction = call.attribute_text("direction", "");
  if (direction != "LEFT" && direction != "RIGHT") refuse_node("the direction is neither LEFT nor RIGHT");
  const Op& op = direction == "LEFT" ? ops::shift_left : ops::shift_right;
  call.give(call.graph().call(op, {call.tensor(0), call.tensor(1)}));
}

void convert_where(Call& call) {
  Value *condition = call.tensor(0), *then = call.tensor(1), *otherwise = call.tensor(2);
  broadcast(condition->type.shape, broadcast(then->type.shape, otherwise->type.shape));
  call.give(call.graph().call(ops::select, {condition, then, otherwise}));
}

DType target_dtype(int64_t data_type) {
  const std::optional<DType> dtype = dtype_of(data_type);
  if (!dtype) refuse("elements of type " + data_type_name(data_type));
  return *dtype;
}

void cast_to(Call& call, DType dtype) {
  if (bit_width(dtype) == 4) refuse("casts to elements of four bits");
  const bool is_float8 = is_floating(dtype) && bit_width(dtype) == 8;
  call.give(is_float8 ? to_float8(call, call.tensor(0), dtype)
                      : converted(call.graph(), call.tensor(0), dtype));
}

void convert_cast(Call& call) { cast_to(call, target_dtype(call.attribute_integer("to", 0))); }
void convert_cast_like(Call& call) { cast_to(call, call.element_type(1)); }

void convert_identity(Call& call) {
  if (std::optional<Sizes> sizes = call.sizes(0)) return call.give_sizes(std::move(*sizes));
  call.give(call.tensor(0));
}

// The bounds are scalars: constants as a rule, but any tensors are right.
void convert_clip(Call& call) {
  Graph& graph = call.graph();
  Value* x = call.tensor(0);
  const auto known = [&](size_t input) { return !call.has(input) || call.literal(input).has_value(); };
  if (is_floating(x->type.dtype) && known(1) && known(2)) {
    ops::Clamp clamp;
    if (call.has(1)) clamp.low = call.number(1);
    if (call.has(2)) clamp.high = call.number(2);
    if (clamp.low == clamp.low && clamp.high == clamp.high)
      return call.give(graph.call(ops::clamp, {x}, clamp));
  }
  if (call.has(1)) x = graph.call(ops::maximum, {x, call.tensor(1)});
  if (call.has(2)) x = graph.call(ops::minimum, {x, call.tensor(2)});
  call.give(x);
}

void convert_is_infinite(Call& call) {
  Graph& graph = call.graph();
  const Term x(graph, call.tensor(0));
  const bool low = call.flag("detect_negative", true), high = call.flag("detect_positive", true);
  const Term infinite = x.apply(ops::is_infinite);
  if (low && high) return call.give(infinite);
  if (low) return call.give(infinite.apply(ops::logical_and, x < 0));
  if (high) return call.give(infinite.apply(ops::logical_and, x > 0));
  call.give(filled(graph, static_cast<Value*>(x)->type.shape, 0, DType::kBool));
}

constexpr auto kElementwise = std::to_array<Converter>({
    {"Abs", convert_unary, &ops::absolute},
    {"Acos", convert_unary, &ops::acos},
    {"Acosh", convert_unary, &ops::acosh},
    {"Add", convert_binary, &ops::add, 7},
    {"And", convert_binary, &ops::logical_and, 7},
    {"Asin", convert_unary, &ops::asin},
    {"Asinh", convert_unary, &ops::asinh},
    {"Atan", convert_unary, &ops::atan},
    {"Atanh", convert_unary, &ops::atanh},
    {"BitShift", convert_shift, nullptr, 11},
    {"BitwiseAnd", convert_binary, &ops::bitwise_and, 18},
    {"BitwiseNot", convert_unary, &ops::bitwise_not, 18},
    {"BitwiseOr", convert_binary, &ops::bitwise_or, 18},
    {"BitwiseXor", convert_binary, &ops::bitwise_xor, 18},
    {"Cast", convert_cast, nullptr, 9},
    {"CastLike", convert_cast_like, nullptr, 15},
    {"Ceil", convert_unary, &ops::ceil},
    {"Clip", convert_clip, nullptr, 11},
    {"Cos", convert_unary, &ops::cos},
    {"Cosh", convert_unary, &ops::cosh},
    {"Div", convert_binary, &ops::divide, 7},
    {"Equal", convert_binary, &ops::equal, 7},
    {"Erf", convert_unary, &ops::erf, 9},
    {"Exp", convert_unary, &ops::exp},
    {"Floor", convert_unary, &ops::floor},
    {"Greater", convert_binary, &ops::greater, 7},
    {"GreaterOrEqual", convert_binary, &ops::greater_equal, 12},
    {"Identity", convert_identity},
    {"IsInf", convert_is_infinite, nullptr, 10},
    {"IsNaN", convert_unary, &ops::is_nan, 9},
    {"Less", convert_binary, &ops::less, 7},
    {"LessOrEqual", convert_binary, &ops::less_equal, 12},
    {"Log", convert_unary, &ops::log},
    {"Max", convert_variadic, &ops::maximum, 8},
    {"Mean", convert_mean, nullptr, 8},
    {"Min", convert_variadic, &ops::minimum, 8},
    {"Mod", convert_mod, nullptr, 10},
    {"Mul", convert_binary, &ops::multiply, 7},
    {"Neg", convert_unary, &ops::negate},
    {"Not", convert_unary, &ops::logical_not},
    {"Or", convert_binary, &ops::logical_or, 7},
    {"Pow", convert_pow, nullptr, 7},
    {"Reciprocal", convert_unary, &ops::reciprocal},
    {"Round", convert_unary, &ops::round, 11},
    {"Sign", convert_unary, &ops::sign, 9},
    {"Sin", convert_unary, &ops::sin, 7},
    {"Sinh", convert_unary, &ops::sinh, 9},
    {"Sqrt", convert_unary, &ops::square_root},
    {"Sub", convert_binary, &ops::subtract, 7},
    {"Sum", convert_variadic, &ops::add, 8},
    {"Tan", convert_unary, &ops::tan, 7},
    {"Tanh", convert_unary, &ops::tanh},
    {"Where", convert_where, nullptr, 9},
    {"Xor", convert_binary, &ops::logical_xor, 7},
});

}  // namespace

std::span<const Converter> elementwise_converters() { return kElementwise; }

}  // namespace ingot::core::onnx
