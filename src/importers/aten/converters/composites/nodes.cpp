// SPDX-License-Identifier: Apache-2.0
// Nodes of our own operators in the rows of core/*.def: `op.softmax(x, axis=1)`.
#include <algorithm>

#include "importers/aten/converters/composites/evaluation.h"
#include "importers/aten/converters/promotion.h"
#include "ops/ops.h"
#include "support/error.h"

namespace ingot::core::aten {
namespace {

template <typename Element, typename Read>
std::vector<Element> elements_of(Evaluation& evaluation, const Argument& value, const Read& read) {
  std::vector<Element> elements;
  for (const Argument& item : evaluation.list_in(value)) elements.push_back(read(item));
  return elements;
}

// In the type that the attribute has.
AttributeValue attribute_of(Evaluation& evaluation, const AttributeValue& type, const Argument& value) {
  const auto integer = [&](const Argument& item) { return evaluation.integer(item); };
  const auto real = [&](const Argument& item) { return evaluation.number(item); };
  const auto size = [&](const Argument& item) { return evaluation.size_of(item); };
  if (std::holds_alternative<bool>(type)) return evaluation.is_true(value);
  if (std::holds_alternative<int64_t>(type)) return integer(value);
  if (std::holds_alternative<double>(type)) return real(value);
  if (std::holds_alternative<Dim>(type)) return size(value);
  if (std::holds_alternative<std::vector<int64_t>>(type))
    return elements_of<int64_t>(evaluation, value, integer);
  if (std::holds_alternative<std::vector<double>>(type)) return elements_of<double>(evaluation, value, real);
  if (std::holds_alternative<std::vector<Dim>>(type)) return elements_of<Dim>(evaluation, value, size);
  const auto* text = std::get_if<std::string>(&value.value);
  if (text != nullptr && std::holds_alternative<std::string>(type)) return *text;
  const auto* dtype = std::get_if<DType>(&value.value);
  if (dtype != nullptr && std::holds_alternative<DType>(type)) return *dtype;
  evaluation.call().refuse("an argument of this kind");
}

AttributeValues attributes_of(Evaluation& evaluation, const Op& op, std::span<const NamedArgument> given) {
  const std::vector<std::string_view> names = op.attributes.names();
  AttributeValues values = op.attributes.defaults();
  for (const NamedArgument& argument : given) {
    if (argument.name.empty()) continue;
    const auto found = std::ranges::find(names, argument.name);
    invariant(found != names.end(), "core/*.def has an attribute that its operator does not have");
    AttributeValue& value = values[static_cast<size_t>(found - names.begin())];
    value = attribute_of(evaluation, value, argument.argument);
  }
  return values;
}

// Lists are operands one by one.
void add_operands(const Argument& value, std::vector<Argument>& operands) {
  const auto* list = std::get_if<ArgumentList>(&value.value);
  if (list == nullptr) return operands.push_back(value);
  for (const Argument& item : *list) add_operands(item, operands);
}

// Numbers take the dtype of the last tensor.
std::vector<core::Value*> operands_of(Evaluation& evaluation, std::span<const NamedArgument> given) {
  std::vector<Argument> operands;
  for (const NamedArgument& argument : given)
    if (argument.name.empty()) add_operands(argument.argument, operands);
  std::optional<DType> dtype;
  for (const Argument& operand : operands)
    if (evaluation.is_tensor(operand)) dtype = evaluation.tensor(operand)->type.dtype;
  std::vector<core::Value*> values;
  for (const Argument& operand : operands) {
    const bool is_missing = std::holds_alternative<None>(operand.value);
    const bool is_number = !is_missing && !evaluation.is_tensor(operand);
    evaluation.call().require(!is_number || dtype, "numbers in place of tensors");
    values.push_back(is_missing  ? nullptr
                     : is_number ? evaluation.operand(operand, *dtype)
                                 : evaluation.tensor(operand));
  }
  return values;
}

}  // namespace

core::Value* Evaluation::tensor(const Argument& value) {
  if (is_complex(meta(value).dtype)) call_.refuse("complex numbers");
  return scope_.tensor(std::get<ValueId>(value.value));
}

core::Value* Evaluation::operand(const Argument& value, DType dtype) {
  core::Graph& graph = call_.graph();
  if (is_tensor(value)) return converted(graph, tensor(value), dtype);
  if (core::Value* real =
          is_real_symbol(value) ? scope_.real_of_sizes(std::get<ValueId>(value.value)) : nullptr)
    return converted(graph, real, dtype);
  if (is_bool_symbol(value)) return converted(graph, truth_of(value), dtype);
  const bool is_real = std::holds_alternative<double>(value.value) || is_real_symbol(value);
  if (is_real || std::holds_alternative<bool>(value.value)) return scalar(graph, number(value), dtype);
  return size_scalar(graph, size_of(value), dtype);
}

Argument Evaluation::node_of(std::string_view name, std::span<const NamedArgument> given) {
  const Op* op = ops::find_op(name);
  invariant(op != nullptr, "core/*.def has an operator that does not exist");
  const core::Node* node =
      call_.graph().add(*op, operands_of(*this, given), attributes_of(*this, *op, given));
  ArgumentList results;
  for (core::Value* result : node->results) results.push_back({scope_.bind(result)});
  return results.size() == 1 ? results[0] : Argument{std::move(results)};
}

}  // namespace ingot::core::aten
