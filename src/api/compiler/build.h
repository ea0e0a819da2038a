// SPDX-License-Identifier: Apache-2.0
// From a program to an engine that can run here: shared by all ways to build.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "compiler/options.h"
#include "importers/aten/imported.h"
#include "importers/aten/program/aten_graph.h"
#include "ingot/build.h"
#include "passes/pass_runner.h"
#include "support/file.h"

namespace ingot::core::api {

// Imports a model that is not a program of ATen calls; whether its weights are constants.
using ImportModel = std::function<aten::Imported(bool weights_are_constants)>;

struct Model {
  aten::Program program;
  std::weak_ptr<const MappedFile>
      file;            // the file that weights may be mapped from; empty if they are in memory
  ImportModel import;  // empty: the program is the model; otherwise it describes the call alone
};

// Reads the program (phase "read"), compiles it, prepares its weights, makes the engine and, if the options
// name an output, writes it. `report` may be NULL. Throws, also if the model's file changed meanwhile; then
// neither result is written.
void build(const std::function<Model()>& read, const ingot_build_options* options, ingot_engine** engine,
           ingot_text** report);
// Throws what every build would throw for these options; `program` (may be null) has the inputs that `shapes`
// must match.
void check_options(const ingot_build_options* options, const aten::Program* program);
void build(const aten::Program& program, const ingot_build_options* options, ingot_engine** engine,
           ingot_text** report);
// The engine of a model that was read, not written to a file; `passes` receives those that ran.
std::unique_ptr<ingot_engine> build(const Model& model, const ingot_build_options* options,
                                    std::vector<PassRunner::Timing>& passes);
// The options of a build, checked before any work is done: their names and values, backend and passes.
CompileOptions checked_options(const ingot_build_options& options);
// The caller's struct as this library knows it; NULL: no options.
ingot_build_options copy_of(const ingot_build_options* given);

// The nodes of the program that an engine would run slowly, as JSON.
std::string slow_nodes(const aten::Program& program, const ingot_build_options* options);

}  // namespace ingot::core::api
