// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "compiler/build_report.h"
#include "compiler/engine_names.h"
#include "engine/engine_data.h"
#include "passes/hoist.h"
#include "plan/plan_input.h"

namespace ingot::core {

struct LoweredPrograms {
  std::vector<NodeStep> init, main;
};

// All results of a build but the kernel binaries, ready to be assembled.
struct BuildParts {
  NamedModel model;
  const Split& split;
  LoweredPrograms lowered;
  const Target& target;
  Place place;  // of the target's values
  std::string key;
};

struct AssembledEngine {
  std::shared_ptr<EngineData> data;
  EngineOrigins origins;
};

// Plans both programs, fills the tables of the engine (weights, sources, states, nodes), and binds it to the
// model. Its images are missing, and so are the counts of distinct kernels.
AssembledEngine assemble(BuildParts parts, BuildReport& report);

}  // namespace ingot::core
