// SPDX-License-Identifier: Apache-2.0
// The graphs of a model on their way to an engine, for people to look at.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "compiler/options.h"
#include "importers/aten/imported.h"
#include "importers/aten/program/aten_graph.h"
#include "passes/pass.h"

namespace ingot::core {

enum class GraphStage : uint8_t {
  kImported,   // the importer's, with the sizes that the options ask for
  kOptimized,  // after all passes, as they are lowered to steps
};

struct ModelGraphs {
  Split split;                       // imported: all of it is main
  aten::Imported model;              // without its graph
  std::vector<std::string> outputs;  // names of the results
};

// By the passes that a build with these options runs, without generating code. Symbols have the model's
// names. Throws like a build.
ModelGraphs model_graphs(const aten::Program& program, const std::function<aten::Imported()>& import,
                         GraphStage stage, const CompileOptions& options,
                         std::span<const Backend* const> backends);

}  // namespace ingot::core
