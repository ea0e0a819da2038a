// SPDX-License-Identifier: Apache-2.0
#include "ir/bound_symbol.h"

namespace ingot::core {

std::string bound_symbol(const Node& node) {
  if (!node.op->traits.has(Trait::kBindsSize) || node.values.empty()) return {};
  const Dim* size = std::get_if<Dim>(node.values.data());
  return size != nullptr && size->is_symbol() ? size->symbol_name() : std::string();
}

std::set<std::string, std::less<>> symbols_bound_by_nodes(const Graph& graph) {
  std::set<std::string, std::less<>> symbols;
  for (const auto& node : graph.nodes()) {
    if (std::string symbol = bound_symbol(*node); !symbol.empty()) symbols.insert(std::move(symbol));
  }
  return symbols;
}

}  // namespace ingot::core
