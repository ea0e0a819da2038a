// SPDX-License-Identifier: Apache-2.0
#include "importers/aten/program/values_read.h"

namespace ingot::core::aten {

std::set<ValueId> values_read(const Graph& graph) {
  std::set<ValueId> values;
  const auto add = [&](ValueId id) { values.insert(id); };
  for (const Node& node : graph.nodes) {
    for (const NamedArgument& argument : node.arguments) for_each_value(argument.argument, add);
  }
  for (const Output& output : graph.outputs) for_each_value(output.value, add);
  return values;
}

}  // namespace ingot::core::aten
