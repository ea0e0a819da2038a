// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <vector>

#include "backends/backend.h"
#include "engine/program.h"

namespace ingot::core {

// One scheduled step: what a backend lowered a node to, and its kernel binary.
struct ScheduledStep {
  const Node* node;
  LoweredStep step;
  std::vector<uint32_t> node_records;
  Dim operations = 0, bytes = 0;  // as in Step
  std::string backend = {};       // the backend that lowered it, and runs it if it is a kernel
};

struct PlanInput {
  const Graph* graph;                        // final graph of one program
  std::vector<ScheduledStep> steps;          // in order
  std::map<const Value*, uint32_t> weights;  // `weight` and `constant` results -> id in the weight table
  SymbolValues typical;                      // sizes to optimize the arena for
  Place place;                               // of all buffers
};

// Activation bytes of a plan at `typical`: the liveness lower bound, and the arena's size.
struct PlanReport {
  int64_t lower_bound = 0, arena = 0;
};

}  // namespace ingot::core
