// SPDX-License-Identifier: Apache-2.0
#include "importers/aten/program/known_sizes.h"

#include <map>

namespace ingot::core::aten {
namespace {

using KnownSizes = std::map<std::string, Dim>;

// Sizes of inputs stay symbols: callers are told what their range is.
KnownSizes known_sizes(const Graph& graph) {
  KnownSizes known;
  for (const auto& [name, info] : graph.symbols) {
    if (info.range.min == info.range.max) known.emplace(name, info.range.min);
  }
  const auto keep = [&](const Dim& dim) {
    for (const std::string& symbol : dim.symbols()) known.erase(symbol);
  };
  for (const Input& input : graph.inputs) {
    const Value& value = graph.values[input.value];
    for (const Dim& dim : value.tensor.shape) keep(dim);
    if (value.integer) keep(*value.integer);
  }
  return known;
}

void replace(Graph& graph, const KnownSizes& known);

void replace(Argument& argument, const KnownSizes& known) {
  if (auto* list = std::get_if<ArgumentList>(&argument.value)) {
    for (Argument& entry : *list) replace(entry, known);
  }
  if (auto* body = std::get_if<std::shared_ptr<Graph>>(&argument.value)) {
    *body = std::make_shared<Graph>(**body);
    replace(**body, known);
  }
}

void replace(Graph& graph, const KnownSizes& known) {
  for (Value& value : graph.values) {
    for (Dim& dim : value.tensor.shape) dim = substitute(dim, known);
    for (Dim& dim : value.tensor.strides) dim = substitute(dim, known);
    if (value.integer) value.integer = substitute(*value.integer, known);
  }
  for (Node& node : graph.nodes) {
    for (NamedArgument& argument : node.arguments) replace(argument.argument, known);
  }
  for (const auto& [name, size] : known) graph.symbols.erase(name);
}

}  // namespace

std::optional<Graph> with_known_sizes(const Graph& graph) {
  const KnownSizes known = known_sizes(graph);
  if (known.empty()) return std::nullopt;
  Graph changed = graph;
  replace(changed, known);
  return changed;
}

}  // namespace ingot::core::aten
