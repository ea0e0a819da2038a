// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "compiler/build_report.h"
#include "engine/engine_data.h"
#include "importers/aten/imported.h"
#include "importers/aten/program/aten_graph.h"
#include "passes/hoist.h"
#include "plan/plan_input.h"

namespace ingot::core {

struct LoweredPrograms {
  std::vector<NodeStep> init, main;
};

// All results of a build, ready to be assembled.
struct BuildParts {
  const aten::Program& program;
  const aten::Imported& model;
  const Split& split;
  LoweredPrograms lowered;
  std::vector<Image> images;
  const Target& target;
  Place place;  // of the target's values
  std::string key;
};

// The values of a weight, row-major: the model's own memory where it is.
Tensor dense_values(const aten::WeightSource& weight);

// Plans both programs and fills the tables of the engine: weights, sources, states, nodes, signature.
std::shared_ptr<EngineData> assemble(BuildParts parts, BuildReport& report);

}  // namespace ingot::core
