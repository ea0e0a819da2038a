// SPDX-License-Identifier: Apache-2.0
#include "importers/aten/program/values_read.h"

#include <algorithm>
#include <string>

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

std::set<ValueId> values_needed(const Graph& graph) {
  std::set<ValueId> values;
  const auto add = [&](ValueId id) { values.insert(id); };
  for (const Output& output : graph.outputs) for_each_value(output.value, add);
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    const bool has_effect = node->outputs.empty() || !node->target.starts_with("aten.") ||
                            node->target.find("_.") != std::string::npos;
    const auto is_needed = [&](const auto& output) { return output && values.contains(*output); };
    if (!has_effect && std::ranges::none_of(node->outputs, is_needed)) continue;
    for (const NamedArgument& argument : node->arguments) for_each_value(argument.argument, add);
  }
  return values;
}

}  // namespace ingot::core::aten
