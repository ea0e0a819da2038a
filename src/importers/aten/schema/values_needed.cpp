// SPDX-License-Identifier: Apache-2.0
#include "importers/aten/schema/values_needed.h"

#include <algorithm>

#include "importers/aten/program/values_read.h"
#include "importers/aten/schema/schemas.h"

namespace ingot::core::aten {

std::set<ValueId> values_needed(const Graph& graph, const Aliases& aliases) {
  std::set<ValueId> values;
  const auto add = [&](ValueId id) { values.insert(id); };
  for (const Output& output : graph.outputs) for_each_value(output.value, add);
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    const Node& node = graph.nodes[i];
    const bool has_effect = node.outputs.empty() || aliases.target[i] || !find_schema(node.target);
    const auto is_needed = [&](const auto& output) { return output && values.contains(*output); };
    if (!has_effect && std::ranges::none_of(node.outputs, is_needed)) continue;
    for (const NamedArgument& argument : node.arguments) for_each_value(argument.argument, add);
  }
  return values;
}

}  // namespace ingot::core::aten
