// SPDX-License-Identifier: Apache-2.0
#include "importers/aten/program/size_symbols.h"

#include <algorithm>

namespace ingot::core::aten {

bool decides_sizes(const Graph& graph, const std::string& symbol) {
  const auto depends = [&](const Dim& size) { return std::ranges::count(size.symbols(), symbol) > 0; };
  const auto is_sized = [&](const Value& value) { return std::ranges::any_of(value.tensor.shape, depends); };
  const auto holds_one = [&](const NamedArgument& argument) {
    const auto* inner = std::get_if<std::shared_ptr<Graph>>(&argument.argument.value);
    return inner != nullptr && decides_sizes(**inner, symbol);
  };
  return std::ranges::any_of(graph.values, is_sized) ||
         std::ranges::any_of(
             graph.nodes, [&](const Node& node) { return std::ranges::any_of(node.arguments, holds_one); });
}

}  // namespace ingot::core::aten
