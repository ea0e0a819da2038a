// SPDX-License-Identifier: Apache-2.0
// Runs a graph on host tensors, slowly and surely: Loop IR by the interpreter, routines by call,
// decompositions by themselves. The oracle of pass and backend tests, and what folding uses.
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

// Binds shape symbols from the inputs' sizes. UserError if sizes contradict the graph's types or ranges.
Evaluation evaluate(const Graph& graph, std::span<const Tensor> inputs, const TensorMap& weights);

// Value of one node whose operands are all given (null for absent optional ones).
std::vector<Tensor> evaluate_node(const Node& node, std::span<const Tensor* const> operands,
                                  const SymbolValues& symbols);

}  // namespace ingot::core
