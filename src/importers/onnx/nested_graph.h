// SPDX-License-Identifier: Apache-2.0
// The graph of a branch or loop, which becomes a graph of ours with the values that it uses as inputs.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "importers/onnx/call.h"

namespace ingot::core::onnx {

// The names that the graphs use of the scopes around them, each once.
std::vector<std::string> names_from_outside(std::span<const GraphDef* const> graphs);

class NestedGraph {
 public:
  // `def` outlives it.
  NestedGraph(Call& call, const GraphDef& def, std::string name);

  Graph& graph() { return graph_; }
  Scope& scope() { return *scope_; }
  // A value for the next input of `def`: INGOT-U543 if it has no more.
  void bind(Value* value);
  void bind(Sizes sizes);
  // Lets the graph read values of `outer`. Sizes, weights and constants are in it by themselves; others are
  // inputs of it, which stand for the values that are returned.
  std::vector<Value*> bring_in(Scope& outer, std::span<const std::string> names);
  // Imports the nodes; their results, and whether result `index` is known to be true.
  std::vector<Value*> import();
  bool is_true(size_t index);
  // The graph with these results, to be moved into a node.
  Graph take(std::vector<Value*> outputs);

 private:
  const std::string& next_input();

  const GraphDef& def_;
  Graph graph_;
  std::unique_ptr<Scope> scope_;
  size_t bound_ = 0;
};

}  // namespace ingot::core::onnx
