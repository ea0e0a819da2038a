// SPDX-License-Identifier: Apache-2.0
#include "importers/aten/control_operands.h"

#include <utility>

#include "ops/weight_or_constant.h"

namespace ingot::core::aten {

ControlArguments arguments_of(const Node& node) {
  ControlArguments result;
  for (const NamedArgument& argument : node.arguments) {
    if (const auto* graph = std::get_if<std::shared_ptr<Graph>>(&argument.argument.value))
      result.graphs.push_back(graph->get());
    else
      result.others.push_back(&argument.argument);
  }
  return result;
}

const ArgumentList& list_of(const ControlArguments& arguments, size_t index) {
  static const ArgumentList kNone;
  const auto* list =
      index < arguments.others.size() ? std::get_if<ArgumentList>(&arguments.others[index]->value) : nullptr;
  return list == nullptr ? kNone : *list;
}

std::vector<const Argument*> pointers(const ArgumentList& list) {
  std::vector<const Argument*> result;
  for (const Argument& argument : list) result.push_back(&argument);
  return result;
}

Operands::Operands(core::Graph& body, std::vector<core::Value*> outer) : outer_(std::move(outer)) {
  for (core::Value* value : outer_) inner_.push_back(body.add_input(value->name, value->type));
}

std::vector<core::Value*> Operands::with_weights(core::Graph& body, size_t first) const {
  std::vector<core::Value*> values = inner_;
  for (size_t i = first; i < values.size(); ++i) {
    const core::Node* producer = outer_[i]->producer;
    if (ops::is_weight_or_constant(producer)) values[i] = body.add_copy(*producer, {})->results[0];
  }
  return values;
}

}  // namespace ingot::core::aten
