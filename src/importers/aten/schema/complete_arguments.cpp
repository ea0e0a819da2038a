// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <utility>

#include "importers/aten/program/aten_text.h"
#include "importers/aten/schema/schemas.h"
#include "support/error.h"

namespace ingot::core::aten {
namespace {

[[noreturn]] void refuse(const Node& node, std::string message) {
  throw UserError(
      ErrorDetails{.code = "INGOT-U510",
                   .message = fmt::format("{}: {}", node.target, message),
                   .node = node.name,
                   .source_line = to_string(node.source),
                   .advice = "check the program that made this graph: it does not follow ATen's schema"});
}

template <typename... Types>
bool holds(const Argument& argument) {
  return (std::holds_alternative<Types>(argument.value) || ...);
}

// A number is accepted for a tensor: torch wraps it into a tensor without dims.
bool accepts_element(ArgumentKind kind, const Argument& argument) {
  switch (kind) {
    case ArgumentKind::kTensor:
      return holds<ValueId, bool, int64_t, double, std::complex<double>, None>(argument);
    case ArgumentKind::kInteger:
      return holds<ValueId, int64_t>(argument);
    case ArgumentKind::kFloat:
      return holds<ValueId, double>(argument);
    case ArgumentKind::kBool:
      return holds<ValueId, bool>(argument);
    case ArgumentKind::kScalar:
      return holds<ValueId, bool, int64_t, double, std::complex<double>>(argument);
    case ArgumentKind::kString:
    case ArgumentKind::kLayout:
    case ArgumentKind::kMemoryFormat:
      return holds<std::string>(argument);
    case ArgumentKind::kDType:
      return holds<DType>(argument);
    case ArgumentKind::kDevice:
      return holds<Device>(argument);
    case ArgumentKind::kGenerator:
      return false;
  }
  return false;
}

// Implicit conversions of the dispatcher.
void convert_element(ArgumentKind kind, Argument& argument) {
  const auto* integer = std::get_if<int64_t>(&argument.value);
  const auto* boolean = std::get_if<bool>(&argument.value);
  const auto* text = std::get_if<std::string>(&argument.value);
  if (kind == ArgumentKind::kFloat && integer) argument.value = static_cast<double>(*integer);
  if (kind == ArgumentKind::kInteger && boolean) argument.value = int64_t{*boolean};
  if (kind == ArgumentKind::kBool && integer) argument.value = *integer != 0;
  if (kind == ArgumentKind::kDevice && text) argument.value = Device{.type = *text};
}

bool accepts(const SchemaType& type, const Argument& argument) {
  if (holds<None>(argument)) return type.is_optional || type.kind == ArgumentKind::kTensor;
  if (!type.is_list) return accepts_element(type.kind, argument);
  const auto* list = std::get_if<ArgumentList>(&argument.value);
  if (!list) return false;
  for (const Argument& element : *list) {
    if (!accepts_element(type.kind, element)) return false;
    if (holds<None>(element) && !type.has_optional_elements) return false;
  }
  return true;
}

void convert(const SchemaType& type, Argument& argument) {
  if (holds<None>(argument)) return;
  if (!type.is_list) return convert_element(type.kind, argument);
  if (type.list_size > 0 && holds<ValueId, bool, int64_t, double>(argument))
    argument.value = ArgumentList(static_cast<size_t>(type.list_size), Argument(argument));
  if (auto* list = std::get_if<ArgumentList>(&argument.value))
    for (Argument& element : *list) convert_element(type.kind, element);
}

// The position of an argument in the schema.
size_t place_of(const Node& node, const Schema& schema, const NamedArgument& given, size_t position) {
  for (size_t i = 0; i < schema.arguments.size(); ++i)
    if (given.name.empty() ? i == position && !schema.arguments[i].is_keyword_only
                           : schema.arguments[i].name == given.name)
      return i;
  if (given.name.empty()) refuse(node, "more positional arguments than the schema has");
  refuse(node, fmt::format("the schema has no argument '{}'", given.name));
}

Argument take_or_default(const Node& node, const SchemaArgument& expected, std::optional<Argument>& given) {
  if (!given && !expected.default_value)
    refuse(node, fmt::format("argument '{}' is missing and has no default", expected.name));
  if (!given) return *expected.default_value;
  convert(expected.type, *given);
  if (!accepts(expected.type, *given))
    refuse(node, fmt::format("argument '{}' is {}, but the schema requires {}", expected.name,
                             to_string(*given), expected.type.text));
  return std::move(*given);
}

}  // namespace

void complete_arguments(Node& node) {
  const std::optional<Schema> schema = find_schema(node.target);
  if (!schema) return;
  std::vector<std::optional<Argument>> given(schema->arguments.size());
  for (size_t i = 0; i < node.arguments.size(); ++i) {
    const size_t place = place_of(node, *schema, node.arguments[i], i);
    if (given[place])
      refuse(node, fmt::format("argument '{}' is given twice", schema->arguments[place].name));
    given[place] = std::move(node.arguments[i].argument);
  }
  node.arguments.clear();
  for (size_t i = 0; i < given.size(); ++i) {
    const SchemaArgument& expected = schema->arguments[i];
    node.arguments.push_back({expected.name, take_or_default(node, expected, given[i])});
  }
}

}  // namespace ingot::core::aten
