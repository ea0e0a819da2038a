// SPDX-License-Identifier: Apache-2.0
#include "importers/aten/schema/shared_results.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <string_view>

namespace ingot::core::aten {
namespace {

// The tensors of the call in order, those of its first list if it begins with one.
std::vector<ValueId> first_tensors(const Node& node, size_t position) {
  std::vector<ValueId> tensors;
  if (position >= node.arguments.size()) return tensors;
  const Argument& argument = node.arguments[position].argument;
  if (const auto* value = std::get_if<ValueId>(&argument.value)) tensors.push_back(*value);
  if (const auto* list = std::get_if<ArgumentList>(&argument.value)) {
    for (const Argument& item : *list) {
      if (const auto* value = std::get_if<ValueId>(&item.value)) tensors.push_back(*value);
    }
  }
  return tensors;
}

// Whether a term and the result have the same labels ('.' represents those of an ellipsis): nothing is
// summed.
bool keeps_labels(std::string_view equation) {
  const auto is_label = [](unsigned char letter) { return std::isalpha(letter) != 0 || letter == '.'; };
  const size_t arrow = equation.find("->");
  std::multiset<char> term, result;
  std::ranges::copy_if(equation.substr(0, arrow), std::inserter(term, term.end()), is_label);
  if (arrow == std::string_view::npos)  // the labels that occur once
    return std::ranges::all_of(term, [&](char label) { return label == '.' || term.count(label) == 1; });
  std::ranges::copy_if(equation.substr(arrow), std::inserter(result, result.end()), is_label);
  return std::ranges::all_of(term, [&](char label) { return result.contains(label); });
}

bool is_sharing_einsum(const Node& node) {
  if (node.target != "aten.einsum.default" || node.arguments.size() < 2) return false;
  const auto* equation = std::get_if<std::string>(&node.arguments[0].argument.value);
  return equation != nullptr && first_tensors(node, 1).size() == 1 && keeps_labels(*equation);
}

bool shares_each(const Node& node) {
  constexpr std::string_view kNames[] = {"aten.atleast_", "aten.broadcast_tensors.", "aten.meshgrid."};
  return std::ranges::any_of(kNames, [&](std::string_view name) { return node.target.starts_with(name); });
}

template <typename T>
bool is_given(const Node& node, std::string_view name, const T& value) {
  return std::ranges::any_of(node.arguments, [&](const NamedArgument& given) {
    const T* number = std::get_if<T>(&given.argument.value);
    return given.name == name && number != nullptr && *number == value;
  });
}

// Dropout that drops nothing returns its operand.
bool is_idle_dropout(const Node& node) {
  constexpr std::string_view kNames[] = {"aten.dropout.", "aten.feature_dropout.", "aten.alpha_dropout.",
                                         "aten.feature_alpha_dropout."};
  return std::ranges::any_of(kNames, [&](std::string_view name) { return node.target.starts_with(name); }) &&
         (is_given(node, "train", false) || is_given(node, "p", 0.0) || is_given(node, "p", int64_t{0}));
}

}  // namespace

std::vector<std::pair<ValueId, ValueId>> shared_results(const Node& node) {
  std::vector<ValueId> operands;
  if (shares_each(node) || is_idle_dropout(node)) operands = first_tensors(node, 0);
  if (is_sharing_einsum(node)) operands = first_tensors(node, 1);
  std::vector<std::pair<ValueId, ValueId>> shared;
  for (size_t i = 0; i < std::min(operands.size(), node.outputs.size()); ++i) {
    if (node.outputs[i]) shared.emplace_back(*node.outputs[i], operands[i]);
  }
  return shared;
}

}  // namespace ingot::core::aten
