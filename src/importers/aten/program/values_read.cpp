// SPDX-License-Identifier: Apache-2.0
#include "importers/aten/program/values_read.h"

namespace ingot::core::aten {
namespace {

void add_values(const Argument& argument, std::set<ValueId>& values) {
  if (const auto* id = std::get_if<ValueId>(&argument.value)) values.insert(*id);
  if (const auto* list = std::get_if<ArgumentList>(&argument.value)) {
    for (const Argument& each : *list) add_values(each, values);
  }
}

}  // namespace

std::set<ValueId> values_read(const Graph& graph) {
  std::set<ValueId> values;
  for (const Node& node : graph.nodes) {
    for (const NamedArgument& argument : node.arguments) add_values(argument.argument, values);
  }
  for (const Output& output : graph.outputs) add_values(output.value, values);
  return values;
}

}  // namespace ingot::core::aten
