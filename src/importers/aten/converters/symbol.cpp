// SPDX-License-Identifier: Apache-2.0
// Arithmetic on sizes and scalars, and assertions. Unknown values are left open: only nodes that need them
// are unsupported.
#include <algorithm>
#include <cmath>

#include "importers/aten/converters/answers.h"
#include "importers/aten/converters/building.h"
#include "importers/aten/converters/converters.h"
#include "importers/aten/converters/promotion.h"
#include "ops/assertion.h"
#include "ops/size_condition.h"

namespace ingot::core::aten {
namespace {

void size_of(Call& call) {
  const core::Value* x = call.tensor("self");
  call.give(extent(call, x, call.axis("dim", x->type.rank())));
}
void element_count_of(Call& call) { call.give(element_count(call.tensor("self")->type)); }

// f64 without dims; null if it is not known from the sizes.
core::Value* real_at(Call& call, size_t position) {
  if (const auto number = call.number_at(position)) return scalar(call.graph(), *number, DType::kF64);
  if (const auto size = call.size_at(position)) return size_scalar(call.graph(), *size, DType::kF64);
  return call.real_of_sizes_at(position);
}

std::string python_name(const Call& call) { return call.node().target.substr(sizeof("_operator.") - 1); }

// Python raises an error, and a processor may trap.
void require_divisor(Call& call) {
  if (const auto divisor = call.size_at(1))
    ops::add_check(call.graph(), CheckKind::kBounds, compare(Predicate::Kind::kNotEqual, *divisor, 0),
                   python_name(call));
}

// Integers of Python have any length. Those of calls may be of any size: the condition always holds, and
// evaluating it is an error if they overflow.
void require_64_bits(Call& call, const Dim& integer) {
  const auto is_of_call = [&](const std::string& symbol) {
    const auto info = call.graph().symbols.find(symbol);
    return info != call.graph().symbols.end() && info->second.range.min == INT64_MIN;
  };
  if (std::ranges::none_of(integer.symbols(), is_of_call)) return;
  ops::add_check(call.graph(), CheckKind::kBounds, either(is_less(integer, 0), at_most(0, integer)),
                 python_name(call));
}
void give_integer(Call& call, const Dim& integer) {
  require_64_bits(call, integer);
  call.give(integer);
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
  if (divides(kOp) && !y && !call.size_at(1)) {  // a float of sizes
    core::Value* is_divisor = emit(call, ops::not_equal, {b, scalar(call.graph(), 0, DType::kF64)});
    call.graph().add(ops::assert_true, {is_divisor}, ops::Assertion{"division by zero"});
  }
  call.give(RealOfSizes{emit(call, kOp, {a, b})});
}
using OfSizes = Dim (*)(const Dim&, const Dim&);
template <OfSizes kOfSizes, double (*kOfReals)(double, double), const Op& kOp>
void symbol_arithmetic(Call& call) {
  const auto a = call.size_at(0), b = call.size_at(1);
  if (!a || !b) return symbol_real<kOfReals, kOp>(call);
  if (divides(kOp)) require_divisor(call);
  give_integer(call, kOfSizes(*a, *b));
}
template <double (*kFunction)(double)>
void to_size(Call& call) {
  if (const auto size = call.size_at(0)) return call.give(*size);
  const auto x = call.number_at(0);
  if (!x) return;
  call.require(std::abs(*x) < 0x1p63, "a size of more than 63 bits");
  call.give(Dim(static_cast<int64_t>(kFunction(*x))));
}
void to_real(Call& call) {
  if (const auto x = call.number_at(0)) return call.give_number(*x);
  if (core::Value* x = real_at(call, 0)) call.give(RealOfSizes{x});
}
void square_root(Call& call) {
  if (const auto x = call.number_at(0)) return call.give_number(std::sqrt(*x));
  if (core::Value* x = real_at(call, 0)) call.give(RealOfSizes{emit(call, ops::square_root, {x})});
}
void negated(Call& call) {
  if (const auto size = call.size_at(0)) return give_integer(call, Dim(0) - *size);
  if (const auto x = call.number_at(0)) return call.give_number(-*x);
  if (core::Value* x = real_at(call, 0)) call.give(RealOfSizes{emit(call, ops::negate, {x})});
}

// A condition on sizes, or a known value; data-dependent ones are left open.
template <Predicate::Kind kKind, bool (*kOfReals)(double, double), bool kTurned = false>
void symbol_comparison(Call& call) {
  const auto a = call.size_at(0), b = call.size_at(1);
  if (a && b) return give_answer(call, kTurned ? compare(kKind, *b, *a) : compare(kKind, *a, *b));
  const auto x = call.number_at(0), y = call.number_at(1);
  if (x && y) give_answer(call, kOfReals(*x, *y) ? always() : negation(always()));
}
template <Predicate (*kJoin)(Predicate, Predicate)>
void joined(Call& call) {
  auto a = condition_at(call, 0), b = condition_at(call, 1);
  if (a && b) give_answer(call, kJoin(std::move(*a), std::move(*b)));
}
void opposite(Call& call) {
  if (const auto condition = condition_at(call, 0)) give_answer(call, negation(*condition));
}

// torch's own text repeats the condition.
std::string message_of(Call& call, std::string_view name) {
  std::string text = call.text(name);
  return text.starts_with("Runtime assertion failed for expression") ? std::string() : text;
}
void assert_scalar(Call& call) {
  auto condition = condition_at(call, 0);
  if (!condition) call.refuse("an assertion on a number that does not depend on sizes alone");
  ops::add_check(call.graph(), CheckKind::kAssertion, std::move(*condition), message_of(call, "assert_msg"));
}
void constrain_range(Call& call) {
  const auto size = call.size_at(0);
  if (!size) call.refuse("an assertion on a number that does not depend on sizes alone");
  if (call.has("min")) ops::add_check(call.graph(), CheckKind::kAssertion, at_most(call.dim("min"), *size));
  if (call.has("max")) ops::add_check(call.graph(), CheckKind::kAssertion, at_most(*size, call.dim("max")));
}
// Devices and memory formats are those of engines.
void assert_metadata(Call& call) {
  const core::Value* x = call.tensor("a");
  const auto dtype = call.dtype("dtype");
  call.require(!dtype || *dtype == x->type.dtype, "an assertion of another dtype than the tensor's");
  call.require(!call.has("stride") || call.dims("stride") == call.tensor_meta("a").strides,
               "an assertion of other strides than the tensor's");
  if (!call.has("size")) return;
  const std::vector<Dim> sizes = call.dims("size");
  call.require(sizes.size() == x->type.rank(), "an assertion of another number of dims than the tensor's");
  for (size_t i = 0; i < sizes.size(); ++i)
    ops::add_check(call.graph(), CheckKind::kAssertion,
                   compare(Predicate::Kind::kEqual, x->type.shape[i], sizes[i]));
}
void assert_tensor(Call& call) {
  core::Value* x = call.tensor("self");
  call.require(element_count(x->type) == Dim(1), "an assertion on several elements");
  call.graph().add(ops::assert_true, {converted(call.graph(), x, DType::kBool)},
                   ops::Assertion{call.text("assert_msg")});
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
double rest(double a, double b) { return a - b * std::floor(a / b); }
double larger(double a, double b) { return std::max(a, b); }
double lesser(double a, double b) { return std::min(a, b); }
double power(double a, double b) { return std::pow(a, b); }

constexpr Converter kSymbolConverters[] = {
    {"_operator.add", symbol_arithmetic<sum, sum, ops::add>},
    {"_operator.and_", joined<both>},
    {"_operator.eq", symbol_comparison<Predicate::Kind::kEqual, is_equal>},
    {"_operator.floordiv", symbol_arithmetic<floor_divide, whole_quotient, ops::floor_divide>},
    {"_operator.ge", symbol_comparison<Predicate::Kind::kAtMost, is_at_least, true>},
    {"_operator.gt", symbol_comparison<Predicate::Kind::kLess, is_more, true>},
    {"_operator.le", symbol_comparison<Predicate::Kind::kAtMost, is_at_most>},
    {"_operator.lt", symbol_comparison<Predicate::Kind::kLess, is_less>},
    {"_operator.mod", symbol_arithmetic<modulo, rest, ops::modulo>},
    {"_operator.mul", symbol_arithmetic<times, times, ops::multiply>},
    {"_operator.ne", symbol_comparison<Predicate::Kind::kNotEqual, is_different>},
    {"_operator.neg", negated},
    {"_operator.or_", joined<either>},
    {"_operator.pow", symbol_real<power, ops::power>},
    {"_operator.sub", symbol_arithmetic<difference, difference, ops::subtract>},
    {"_operator.truediv", symbol_real<quotient, ops::divide>},
    {"aten._assert_async.default", assert_tensor},
    {"aten._assert_async.msg", assert_tensor},
    {"aten._assert_scalar.default", assert_scalar},
    {"aten._assert_tensor_metadata.default", assert_metadata},
    {"aten.sym_constrain_range.default", constrain_range},
    {"aten.sym_constrain_range_for_size.default", constrain_range},
    {"aten.sym_numel.default", element_count_of},
    {"aten.sym_size.int", size_of},
    {"math.ceil", to_size<std::ceil>},
    {"math.floor", to_size<std::floor>},
    {"math.sqrt", square_root},
    {"math.trunc", to_size<std::trunc>},
    {"torch.sym_float", to_real},
    {"torch.sym_int", to_size<std::trunc>},
    {"torch.sym_max", symbol_arithmetic<maximum, larger, ops::maximum>},
    {"torch.sym_min", symbol_arithmetic<minimum, lesser, ops::minimum>},
    {"torch.sym_not", opposite},
    {"torch._sym_sqrt", square_root},
};

}  // namespace

void give_answer(Call& call, const Predicate& condition) {
  const auto& outputs = call.node().outputs;
  if (outputs.empty() || !outputs[0]) return;
  call.graph().add(
      ops::size_condition, {},
      ops::SizeCondition{ops::kAnswer, to_string(condition), {}, static_cast<int64_t>(*outputs[0])});
}

std::optional<Predicate> condition_at(Call& call, size_t position) {
  if (position >= call.node().arguments.size()) return std::nullopt;
  const Argument& argument = call.node().arguments[position].argument;
  if (const auto* known = std::get_if<bool>(&argument.value)) return *known ? always() : negation(always());
  if (const auto* id = std::get_if<ValueId>(&argument.value)) {
    if (auto condition = answer_of(call.graph(), *id)) return condition;
  }
  const std::optional<Dim> size = call.size_at(position);
  return size ? std::optional(compare(Predicate::Kind::kNotEqual, *size, 0)) : std::nullopt;
}

core::Value* compared(core::Graph& graph, const Predicate& condition) {
  using Kind = Predicate::Kind;
  if (condition.kind == Kind::kAnd || condition.kind == Kind::kOr) {
    const Op& op = condition.kind == Kind::kAnd ? ops::logical_and : ops::logical_or;
    return graph.call(op, {compared(graph, condition.parts[0]), compared(graph, condition.parts[1])});
  }
  const Op& op = condition.kind == Kind::kEqual      ? ops::equal
                 : condition.kind == Kind::kNotEqual ? ops::not_equal
                 : condition.kind == Kind::kLess     ? ops::less
                                                     : ops::less_equal;
  return graph.call(op, {size_scalar(graph, condition.left, DType::kI64),
                         size_scalar(graph, condition.right, DType::kI64)});
}

std::optional<Predicate> answer_of(const core::Graph& graph, ValueId id) {
  std::optional<Predicate> found;
  for (const auto& node : graph.nodes()) {
    if (node->op != &ops::size_condition) continue;
    const auto attributes = node->attributes<ops::SizeCondition>();
    if (attributes.kind != ops::kAnswer || attributes.value != static_cast<int64_t>(id)) continue;
    if (found) return std::nullopt;
    found = parse_predicate(attributes.condition);
  }
  return found;
}

std::span<const Converter> symbol_converters() { return kSymbolConverters; }

}  // namespace ingot::core::aten
