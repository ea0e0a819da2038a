// SPDX-License-Identifier: Apache-2.0
// Arithmetic of Python's numbers. Integers and bools that follow from floats are computed in each run, and
// bound to symbols. Unknown values are left open: only nodes that need them are unsupported.
#include <algorithm>
#include <cmath>
#include <limits>

#include "importers/aten/converters/answers.h"
#include "importers/aten/converters/building.h"
#include "importers/aten/converters/converters.h"
#include "importers/aten/converters/data_sizes.h"
#include "importers/aten/converters/promotion.h"
#include "ops/assertion.h"
#include "ops/size_condition.h"

namespace ingot::core::aten {
namespace {

constexpr double kBeyond64Bits = 0x1p63;

core::Value* real(Call& call, double value) { return scalar(call.graph(), value, DType::kF64); }

// f64 without dims; null if it is not known from the sizes.
core::Value* real_at(Call& call, size_t position) {
  if (const auto number = call.number_at(position)) return real(call, *number);
  if (const auto size = call.size_at(position)) return size_scalar(call.graph(), *size, DType::kF64);
  return call.real_of_sizes_at(position);
}

bool has_result(const Call& call) { return !call.node().outputs.empty() && call.node().outputs[0]; }
bool gives(Call& call, ValueKind kind) {
  return has_result(call) && call.scope().value(*call.node().outputs[0]).kind == kind;
}

std::string python_name(const Call& call) {
  return call.node().target.substr(call.node().target.rfind('.') + 1);
}

void require_true(Call& call, core::Value* condition, const std::string& otherwise) {
  call.graph().add(ops::assert_true, {condition}, ops::Assertion{otherwise});
}
void require_size(Call& call, const Predicate& condition) {
  ops::add_check(call.graph(), CheckKind::kBounds, condition, python_name(call));
}

// Python raises an error, and a processor may trap.
void require_divisor(Call& call) {
  if (const auto divisor = call.size_at(1))
    require_size(call, compare(Predicate::Kind::kNotEqual, *divisor, 0));
}

// Integers of Python have any length. Those of calls may be of any size: the condition always holds, and
// evaluating it is an error if they overflow.
void require_64_bits(Call& call, const Dim& integer) {
  if (!is_of_any_sign(integer, call.graph().symbols)) return;
  require_size(call, either(is_less(integer, 0), at_most(0, integer)));
}
void give_integer(Call& call, const Dim& integer) {
  require_64_bits(call, integer);
  call.give(integer);
}

core::Value* magnitude_below(Call& call, core::Value* x, double limit) {
  return emit(call, ops::less, {emit(call, ops::absolute, {x}), real(call, limit)});
}
// Python raises an error for what has no real result, or none that a float holds.
void give_real_of(Call& call, core::Value* result, const std::vector<core::Value*>& operands) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  core::Value* is_right = magnitude_below(call, result, kInfinity);
  for (core::Value* x : operands) {
    core::Value* is_finite = magnitude_below(call, x, kInfinity);
    is_right = emit(call, ops::logical_or, {is_right, emit(call, ops::logical_not, {is_finite})});
  }
  require_true(call, is_right, python_name(call) + " of these numbers is an error in Python");
  call.give(RealOfSizes{result});
}

// Not a constant: with sanitizers, compilers do not compare addresses of other files.
bool divides(const Op& op) { return &op == &ops::floor_divide || &op == &ops::modulo || &op == &ops::divide; }

// Python's operators name no operands: positions do. A float that depends on sizes is computed in each run.
template <double (*kOfReals)(double, double), const Op& kOp>
void symbol_real(Call& call) {
  const auto x = call.number_at(0), y = call.number_at(1);
  if (x && y) return call.give_number(kOfReals(*x, *y));
  if (divides(kOp)) require_divisor(call);
  core::Value *a = real_at(call, 0), *b = real_at(call, 1);
  if (a == nullptr || b == nullptr) return;
  if (divides(kOp) && !y && !call.size_at(1))  // a float of sizes
    require_true(call, emit(call, ops::not_equal, {b, real(call, 0)}), "division by zero");
  core::Value* result = emit(call, kOp, {a, b});
  if (&kOp == &ops::power) return give_real_of(call, result, {a, b});
  call.give(RealOfSizes{result});
}
using OfSizes = Dim (*)(const Dim&, const Dim&);
template <OfSizes kOfSizes, double (*kOfReals)(double, double), const Op& kOp>
void symbol_arithmetic(Call& call) {
  const auto a = call.size_at(0), b = call.size_at(1);
  if (!a || !b) return symbol_real<kOfReals, kOp>(call);
  if (divides(kOp)) require_divisor(call);
  give_integer(call, kOfSizes(*a, *b));
}

void sum_of(Call& call) {
  const auto sizes = call.sizes_at(0);
  if (!sizes) return;
  Dim total = 0;
  for (const Dim& size : *sizes) total = total + size;
  give_integer(call, total);
}

double power(double a, double b) { return std::pow(a, b); }

// A float that has to be below 2^63: what it is computed from decides whether the integer fits.
void give_integer_below(Call& call, core::Value* integer, core::Value* magnitude) {
  require_true(call, magnitude_below(call, magnitude, kBeyond64Bits),
               "the result of " + python_name(call) + " has more than 64 bits");
  give_computed_integer(call, integer);
}
// Of integers that are known, if the result has 64 bits.
std::optional<int64_t> known_power(const Dim& base, const Dim& exponent) {
  const auto a = base.constant(), b = exponent.constant();
  if (!a || !b || *b < 0) return std::nullopt;
  if (*a >= -1 && *a <= 1) return *b == 0 ? 1 : *a == -1 && *b % 2 == 0 ? 1 : *a;
  int64_t result = 1;
  for (int64_t i = 0; i < *b; ++i) {
    if (__builtin_mul_overflow(result, *a, &result)) return std::nullopt;
  }
  return result;
}
void raised(Call& call) {
  const auto a = call.size_at(0), b = call.size_at(1);
  if (!a || !b || gives(call, ValueKind::kSymFloat)) return symbol_real<power, ops::power>(call);
  if (const auto known = known_power(*a, *b)) return call.give(Dim(*known));
  if (*b == Dim(0)) return call.give(Dim(1));
  if (*b == Dim(1)) return call.give(*a);
  if (*b == Dim(2)) return give_integer(call, *a * *a);
  require_size(call, at_most(0, *b));
  core::Graph& graph = call.graph();
  core::Value* integer =
      emit(call, ops::power, {size_scalar(graph, *a, DType::kI64), size_scalar(graph, *b, DType::kI64)});
  give_integer_below(call, integer, emit(call, ops::power, {real_at(call, 0), real_at(call, 1)}));
}

constexpr int64_t kSignBit = 63;
void shifted_left(Call& call) {
  const auto a = call.size_at(0), b = call.size_at(1);
  if (!a || !b) return;
  if (const auto factor = known_power(Dim(2), *b)) return give_integer(call, *a * *factor);
  require_size(call, at_most(0, *b));
  core::Graph& graph = call.graph();
  core::Value* integer =
      emit(call, ops::shift_left, {size_scalar(graph, *a, DType::kI64), size_scalar(graph, *b, DType::kI64)});
  core::Value* factor = emit(call, ops::power, {real(call, 2), real_at(call, 1)});
  give_integer_below(call, integer, emit(call, ops::multiply, {real_at(call, 0), factor}));
}
void shifted_right(Call& call) {
  const auto a = call.size_at(0), b = call.size_at(1);
  if (!a || !b) return;
  if (const auto divisor = known_power(Dim(2), *b)) return call.give(floor_divide(*a, *divisor));
  require_size(call, at_most(0, *b));
  core::Graph& graph = call.graph();
  core::Value* bits = size_scalar(graph, minimum(*b, kSignBit), DType::kI64);
  give_computed_integer(call, emit(call, ops::shift_right, {size_scalar(graph, *a, DType::kI64), bits}));
}
template <const Op& kOp>
void bitwise(Call& call) {
  const auto a = call.size_at(0), b = call.size_at(1);
  if (!a || !b) return;
  core::Graph& graph = call.graph();
  give_computed_integer(
      call, emit(call, kOp, {size_scalar(graph, *a, DType::kI64), size_scalar(graph, *b, DType::kI64)}));
}

template <double (*kFunction)(double), const Op& kOp>
void to_size(Call& call) {
  if (const auto size = call.size_at(0)) return call.give(*size);
  const auto x = call.number_at(0);
  if (x) {
    call.require(std::abs(*x) < kBeyond64Bits, "a size of more than 63 bits");
    return call.give(Dim(static_cast<int64_t>(kFunction(*x))));
  }
  core::Value* value = real_at(call, 0);
  if (value == nullptr) return;
  value = emit(call, kOp, {value});
  give_integer_below(call, converted(call.graph(), value, DType::kI64), value);
}
void rounded(Call& call) {
  const bool has_digits = call.node().arguments.size() > 1 &&
                          !std::holds_alternative<None>(call.node().arguments[1].argument.value);
  call.require(!has_digits, "a number rounded to decimal digits");
  to_size<std::nearbyint, ops::round>(call);
}
void to_real(Call& call) {
  if (const auto x = call.number_at(0)) return call.give_number(*x);
  if (core::Value* x = real_at(call, 0)) call.give(RealOfSizes{x});
}
void square_root(Call& call) {
  if (const auto x = call.number_at(0)) return call.give_number(std::sqrt(*x));
  if (core::Value* x = real_at(call, 0)) give_real_of(call, emit(call, ops::square_root, {x}), {x});
}
void negated(Call& call) {
  if (const auto size = call.size_at(0)) return give_integer(call, Dim(0) - *size);
  if (const auto x = call.number_at(0)) return call.give_number(-*x);
  if (core::Value* x = real_at(call, 0)) call.give(RealOfSizes{emit(call, ops::negate, {x})});
}
void absolute_value(Call& call) {
  if (const auto size = call.size_at(0)) return give_integer(call, maximum(*size, Dim(0) - *size));
  if (const auto x = call.number_at(0)) return call.give_number(std::abs(*x));
  if (core::Value* x = real_at(call, 0)) call.give(RealOfSizes{emit(call, ops::absolute, {x})});
}

// A condition on sizes, a known value, or a bool that each run computes.
template <Predicate::Kind kKind, bool (*kOfReals)(double, double), const Op& kOp, bool kTurned = false>
void symbol_comparison(Call& call) {
  const auto a = call.size_at(0), b = call.size_at(1);
  if (a && b) return give_answer(call, kTurned ? compare(kKind, *b, *a) : compare(kKind, *a, *b));
  const auto x = call.number_at(0), y = call.number_at(1);
  if (x && y) return give_answer(call, kOfReals(*x, *y) ? always() : negation(always()));
  core::Value *left = real_at(call, 0), *right = real_at(call, 1);
  if (left != nullptr && right != nullptr) give_computed_answer(call, emit(call, kOp, {left, right}));
}
template <Predicate (*kJoin)(Predicate, Predicate), const Op& kOp>
void joined(Call& call) {
  if (gives(call, ValueKind::kSymInt)) return bitwise<kOp>(call);
  auto a = condition_at(call, 0), b = condition_at(call, 1);
  if (a && b) give_answer(call, kJoin(std::move(*a), std::move(*b)));
}
void opposite(Call& call) {
  if (const auto condition = condition_at(call, 0)) give_answer(call, negation(*condition));
}

bool is_equal(double a, double b) { return a == b; }
bool is_different(double a, double b) { return a != b; }
bool is_less(double a, double b) { return a < b; }
bool is_at_most(double a, double b) { return a <= b; }
bool is_more(double a, double b) { return a > b; }
bool is_at_least(double a, double b) { return a >= b; }

Dim sum(const Dim& a, const Dim& b) { return a + b; }
Dim difference(const Dim& a, const Dim& b) { return a - b; }
Dim times(const Dim& a, const Dim& b) { return a * b; }
double sum(double a, double b) { return a + b; }
double difference(double a, double b) { return a - b; }
double times(double a, double b) { return a * b; }
double quotient(double a, double b) { return a / b; }
double whole_quotient(double a, double b) { return std::floor(a / b); }
double rest(double a, double b) {
  const double found = std::fmod(a, b);
  return found != 0 && (found < 0) != (b < 0) ? found + b : std::copysign(found, b);
}
double larger(double a, double b) { return std::max(a, b); }
double lesser(double a, double b) { return std::min(a, b); }

using Kind = Predicate::Kind;
constexpr Converter kNumberConverters[] = {
    {"_operator.abs", absolute_value},
    {"_operator.add", symbol_arithmetic<sum, sum, ops::add>},
    {"_operator.and_", joined<both, ops::bitwise_and>, !kComposed, kBindsSizes},
    {"_operator.eq", symbol_comparison<Kind::kEqual, is_equal, ops::equal>},
    {"_operator.floordiv", symbol_arithmetic<floor_divide, whole_quotient, ops::floor_divide>},
    {"_operator.ge", symbol_comparison<Kind::kAtMost, is_at_least, ops::greater_equal, true>},
    {"_operator.gt", symbol_comparison<Kind::kLess, is_more, ops::greater, true>},
    {"_operator.le", symbol_comparison<Kind::kAtMost, is_at_most, ops::less_equal>},
    {"_operator.lshift", shifted_left, !kComposed, kBindsSizes},
    {"_operator.lt", symbol_comparison<Kind::kLess, is_less, ops::less>},
    {"_operator.mod", symbol_arithmetic<modulo, rest, ops::modulo>},
    {"_operator.mul", symbol_arithmetic<times, times, ops::multiply>},
    {"_operator.ne", symbol_comparison<Kind::kNotEqual, is_different, ops::not_equal>},
    {"_operator.neg", negated},
    {"_operator.or_", joined<either, ops::bitwise_or>, !kComposed, kBindsSizes},
    {"_operator.pow", raised, !kComposed, kBindsSizes},
    {"_operator.rshift", shifted_right, !kComposed, kBindsSizes},
    {"_operator.sub", symbol_arithmetic<difference, difference, ops::subtract>},
    {"_operator.truediv", symbol_real<quotient, ops::divide>},
    {"builtins.round", rounded, !kComposed, kBindsSizes},
    {"math.ceil", to_size<std::ceil, ops::ceil>, !kComposed, kBindsSizes},
    {"math.floor", to_size<std::floor, ops::floor>, !kComposed, kBindsSizes},
    {"math.sqrt", square_root},
    {"math.trunc", to_size<std::trunc, ops::truncate>, !kComposed, kBindsSizes},
    {"torch._sym_sqrt", square_root},
    {"torch.sym_float", to_real},
    {"torch.sym_int", to_size<std::trunc, ops::truncate>, !kComposed, kBindsSizes},
    {"torch.sym_max", symbol_arithmetic<maximum, larger, ops::maximum>},
    {"torch.sym_min", symbol_arithmetic<minimum, lesser, ops::minimum>},
    {"torch.sym_not", opposite},
    {"torch.sym_sum", sum_of},
};

}  // namespace

std::span<const Converter> number_converters() { return kNumberConverters; }

}  // namespace ingot::core::aten
