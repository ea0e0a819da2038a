// SPDX-License-Identifier: Apache-2.0
// Sizes as numbers, and assertions on numbers.
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

constexpr Converter kSymbolConverters[] = {
    {"aten._assert_async.default", assert_tensor},
    {"aten._assert_async.msg", assert_tensor},
    {"aten._assert_scalar.default", assert_scalar},
    {"aten._assert_tensor_metadata.default", assert_metadata},
    {"aten.sym_constrain_range.default", constrain_range},
    {"aten.sym_constrain_range_for_size.default", constrain_range},
    {"aten.sym_numel.default", element_count_of},
    {"aten.sym_size.int", size_of},
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
