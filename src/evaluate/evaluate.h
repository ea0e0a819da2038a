// SPDX-License-Identifier: Apache-2.0
// Runs a graph on host tensors, slow but simple: Loop IR through the interpreter, routines directly,
// decompositions recursively. The oracle of pass and backend tests; also used for constant folding.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "types/tensor.h"

namespace ingot::core {

using TensorMap = std::map<std::string, Tensor, std::less<>>;  // by weight or state name

struct Evaluation {
  std::vector<Tensor> outputs;
  TensorMap updates;  // new values of state, by name
};

// Binds shape symbols from the inputs' sizes, and rank symbols to the sizes of rank 0. UserError if sizes
// contradict the graph's types or ranges.
Evaluation evaluate(const Graph& graph, std::span<const Tensor> inputs, const TensorMap& weights);

// The same with symbols already bound, for nested graphs and decompositions.
Evaluation evaluate_with(const Graph& graph, std::span<const Tensor> inputs, const TensorMap& weights,
                         const SymbolValues& symbols);

// The results of one node from its operands (null for absent optional ones).
std::vector<Tensor> evaluate_node(const Node& node, std::span<const Tensor* const> operands,
                                  const SymbolValues& symbols);

// The results of a branch or loop, whose graphs may contain weights.
std::vector<Tensor> evaluate_control_flow(const Node& node, std::span<const Tensor* const> operands,
                                          const TensorMap& weights, const SymbolValues& symbols);

}  // namespace ingot::core
