// SPDX-License-Identifier: Apache-2.0
#include "importers/onnx/found_sizes.h"

#include <fmt/core.h>

#include "ops/data_sizes.h"
#include "ops/distinct.h"

namespace ingot::core::onnx {

FoundSize found_size(Call& call, Value* number, const Dim& most, const char* name) {
  if (const std::optional<Tensor> known = call.scope().literal(number))
    return {number, read_integer(known->view(), {})};
  require(call.scope().is_outermost(), "an output whose size a run finds, in the graph of a branch or loop");
  Graph& graph = call.graph();
  std::string symbol = name;
  for (int i = 0; graph.symbols.contains(symbol); ++i) symbol = fmt::format("{}_{}", name, i);
  graph.symbols[symbol] = {.range = {.min = 0}, .typical = {}, .upper_bound = most};
  const Dim size = Dim::symbol(symbol);
  return {graph.call(ops::bind_size, {number}, ops::DataSize{size}), size};
}

Value* indices_of_true(Call& call, Value* mask) {
  Graph& graph = call.graph();
  const FoundSize found =
      found_size(call, ops::count_of_true(graph, mask), element_count(mask->type), "found");
  return graph.call(ops::nonzero, {mask, found.count}, ops::DataSize{found.size});
}

Value* positions_of_true(Call& call, Value* mask) {
  return without_axis(call.graph(), indices_of_true(call, mask), 1);
}

}  // namespace ingot::core::onnx
