// SPDX-License-Identifier: Apache-2.0
// The only torch semantics in the project: an aten::Program becomes a Graph of our ops, by one converter per
// ATen overload.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "importers/aten/program/aten_graph.h"
#include "ir/graph.h"
#include "types/size_check.h"

namespace ingot::core::aten {

// A weight's values, for the `weight` node of the same name.
struct WeightSource {
  std::string name;
  TensorView data;                    // may be strided
  std::shared_ptr<const void> owner;  // keeps `data` alive
};

// A tensor that the model mutates. `state` nodes refer to it by name.
struct StateSource {
  std::string name;
  std::optional<TensorView> initial;  // value before the first run; none if bound to an input
  std::shared_ptr<const void> owner;
  int mutated_input = -1;  // position among the flat user inputs, if the model mutates an argument
};

struct Imported {
  core::Graph graph;  // inputs: the tensor user inputs, in order; symbols with their ranges; `updates` assign
                      // to states
  std::vector<SizeCheck> checks;  // guards and assertions on sizes
  std::vector<WeightSource> weights;
  std::vector<StateSource> states;
  std::vector<std::string> input_literals;  // one per flat user input: "" for a tensor, otherwise "3", "0.5",
                                            // "true", "none", "'text'"
  std::vector<std::string> output_literals;  // likewise for flat user outputs; "" takes the next graph output
};

// Throws UnsupportedError for the first node that has no converter (or whose converter rejects its
// arguments), UserError for invalid programs.
Imported import_program(const Program& program);

// Whether calls of that overload are best left whole for Ingot; a converter may still reject a call's
// arguments.
bool has_importer(std::string_view target);

// A node that Ingot cannot run, and why.
struct Refusal {
  size_t node;         // index into the graph's nodes
  std::string target;  // "aten.foo.default"
  std::string reason;
  std::string source;  // line of the user's model
};

// All nodes known to be unsupported individually, without importing.
std::vector<Refusal> find_unsupported(const Graph& graph);

}  // namespace ingot::core::aten
