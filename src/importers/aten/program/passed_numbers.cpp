// SPDX-License-Identifier: Apache-2.0
#include "importers/aten/program/passed_numbers.h"

namespace ingot::core::aten {

std::set<std::string, std::less<>> passed_symbols(const Graph& graph) {
  std::set<std::string, std::less<>> passed;
  if (!graph.passes_numbers) return passed;
  for (const Input& input : graph.inputs) {
    const std::optional<Dim>& integer = graph.values[input.value].integer;
    if (!input.literal && integer && integer->is_symbol()) passed.insert(integer->symbol_name());
  }
  for (const Input& input : graph.inputs) {
    for (const Dim& dim : graph.values[input.value].tensor.shape)
      if (dim.is_symbol()) passed.erase(dim.symbol_name());
  }
  return passed;
}

void pass_numbers(Graph& graph) {
  graph.passes_numbers = true;
  for (const std::string& name : passed_symbols(graph)) graph.symbols[name].range = {INT64_MIN, INT64_MAX};
}

}  // namespace ingot::core::aten
