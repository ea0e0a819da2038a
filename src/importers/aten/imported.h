// SPDX-License-Identifier: Apache-2.0
// What an import returns: a graph, and the values that it refers to.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "types/plain_value.h"
#include "types/size_check.h"

namespace ingot::core::aten {

// A weight's values, for the `weight` node of the same name.
struct WeightSource {
  std::string name;
  OwnedView value;
  bool is_saved = true;  // false: a buffer that state dicts leave out
};

// A tensor that the model mutates. `state` nodes refer to it by name.
struct StateSource {
  std::string name;
  std::optional<OwnedView> initial;  // value before the first run; none if bound to an input
  std::optional<uint32_t>
      mutated_input;        // position among the flat user inputs, if the model mutates an argument
  bool is_complex = false;  // to callers; the state and its initial value are pairs
};

struct Imported {
  core::Graph graph;  // inputs: the tensor user inputs, in order; symbols with their ranges; `updates` assign
                      // to states
  std::vector<SizeCheck> checks;  // guards and assertions on sizes
  std::vector<WeightSource> weights;
  std::vector<StateSource> states;
  std::vector<CallSlot> input_slots, output_slots;   // flat user inputs and outputs; tensors are the graph's
  std::set<size_t> complex_inputs, complex_outputs;  // those of `graph` that are complex to callers
};

}  // namespace ingot::core::aten
