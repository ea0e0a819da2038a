// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <vector>

#include "backends/backend.h"
#include "engine/program.h"

namespace ingot::core {

struct NodeStep;

struct NestedSteps {
  const Graph* graph;
  std::vector<NodeStep> steps;
};

// A step with the node that it computes, or a part of it.
struct NodeStep {
  const Node* node;
  LoweredStep step;
  std::vector<uint32_t> node_records;    // as Step::nodes
  Dim operations = 0, bytes = 0;         // as in Step
  std::string backend = {};              // the backend that lowered it, and runs it if it is a kernel
  std::vector<NestedSteps> nested = {};  // of control flow: one per graph of the node
};

struct PlanInput {
  const Graph* graph;                        // final graph of one program
  std::vector<NodeStep> steps;               // in order
  std::map<const Value*, uint32_t> weights;  // `weight` and `constant` results -> id in the weight table
  SymbolValues typical;                      // sizes to optimize the arena for
  Place place;          // of the backend's buffers: a device, beside which others work on the host
  std::string backend;  // whose kernels run there
};

// Activation bytes of a plan at `typical`: the liveness lower bound, and the arena's size.
struct PlanReport {
  int64_t lower_bound = 0, arena = 0;
};

}  // namespace ingot::core
