// SPDX-License-Identifier: Apache-2.0
#include "importers/aten/program/bound_symbols.h"

#include <fmt/core.h>

#include "importers/aten/program/passed_numbers.h"
#include "support/error.h"
#include "types/linear_dim.h"

namespace ingot::core::aten {
namespace {

std::vector<Dim> dims_of(const core::Node& node) {
  std::vector<Dim> dims;
  for (const core::Value* result : node.results)
    dims.insert(dims.end(), result->type.shape.begin(), result->type.shape.end());
  for (const AttributeValue& value : node.values) {
    if (const auto* dim = std::get_if<Dim>(&value)) dims.push_back(*dim);
    if (const auto* list = std::get_if<std::vector<Dim>>(&value))
      dims.insert(dims.end(), list->begin(), list->end());
  }
  return dims;
}

}  // namespace

BoundSymbols rank_symbols(const SymbolTable& symbols) {
  BoundSymbols bound;
  for (const auto& [name, info] : symbols)
    if (info.by_rank) bound.insert(name);
  return bound;
}

BoundSymbols bound_symbols(const Graph& graph) {
  BoundSymbols bound = passed_symbols(graph);
  for (const Input& input : graph.inputs) {
    const Value& value = graph.values[input.value];
    if (input.kind != InputKind::kUser || value.kind != ValueKind::kTensor) continue;
    for (const Dim& dim : value.tensor.shape) {
      if (const auto linear = linear_dim(dim)) bound.insert(linear->symbol);
    }
  }
  return bound;
}

std::string unbound_symbol(std::span<const Dim> dims, const BoundSymbols& bound) {
  for (const Dim& dim : dims) {
    for (const std::string& symbol : dim.symbols()) {
      if (!bound.contains(symbol)) return symbol;
    }
  }
  return {};
}

void refuse_unbound_symbols(const core::Graph& graph, const BoundSymbols& bound) {
  for (const core::Value* input : graph.inputs()) {
    const std::string symbol = unbound_symbol(input->type.shape, bound);
    if (!symbol.empty())
      throw UnsupportedError(
          "INGOT-N522",
          fmt::format("input \"{}\" needs {}, which is not the size of an input", input->name, symbol));
  }
  for (const auto& node : graph.nodes()) {
    const std::string symbol = unbound_symbol(dims_of(*node), bound);
    if (symbol.empty()) continue;
    throw UnsupportedError({.code = "INGOT-N522",
                            .message = fmt::format("it needs {}, which is not the size of an input", symbol),
                            .node = node->name,
                            .source_line = node->source.to_string(),
                            .advice = {}});
  }
}

}  // namespace ingot::core::aten
