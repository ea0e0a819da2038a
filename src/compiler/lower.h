// SPDX-License-Identifier: Apache-2.0
// Final graphs -> steps; each distinct kernel is handed over once to be compiled.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "compiler/image_work.h"
#include "compiler/lone_node.h"
#include "compiler/tactic_table.h"
#include "partition/engine_backends.h"
#include "plan/plan_input.h"

namespace ingot::core {

// What a backend made of a node. The values of the steps are those of `lone`.
struct LoweredNode {
  LoneNode lone;
  std::vector<LoweredStep> steps;
};

// The tactics that were timed earlier on `processor`.
struct KnownTactics {
  TacticTable table;
  std::string processor;
  bool can_time = false;  // the others
};

// What equal nodes of one build share: each is lowered once, and each distinct kernel is one image.
struct ImageTable {
  std::map<std::string, LoweredNode> nodes;  // by the backend and LoneNode::text
  std::map<std::string, ImageId> ids;        // by the backend's target and the key
  ImageWork* work = nullptr;                 // gets each distinct kernel; null: none is compiled
  bool shares = true;  // false: each use is lowered and compiled, to measure what sharing saves
  const KnownTactics* known = nullptr;  // null: none
};

// Lowers every node of `graph` that needs a step, in order, each by the backend that runs it.
std::vector<NodeStep> lower_graph(const Graph& graph, const EngineBackends& backends,
                                  const SymbolTable& symbols, ImageTable& images);

}  // namespace ingot::core
