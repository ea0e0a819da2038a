// SPDX-License-Identifier: Apache-2.0
// From a program to an engine that runs here: what all ways to build share.
#pragma once

#include <functional>
#include <string>

#include "importers/aten/program/aten_graph.h"
#include "ingot/ingot.h"
#include "support/file.h"

namespace ingot::core::api {

struct Model {
  aten::Program program;
  std::weak_ptr<const MappedFile> file;  // that weights may lie in; none if they lie in memory
};

// Reads the program (phase "read"), compiles it, prepares its weights, makes the engine and, where the
// options have an output, writes it. `report` may be NULL. Throws, also if the model's file changed
// meanwhile; then neither result is written.
void build(const std::function<Model()>& read, const ingot_build_options* options, ingot_engine** engine,
           ingot_text** report);
// Throws what every build would throw because of its options; `program` (may be null) has the inputs that
// `shapes` must fit.
void check_options(const ingot_build_options* options, const aten::Program* program);
void build(const aten::Program& program, const ingot_build_options* options, ingot_engine** engine,
           ingot_text** report);

// What an engine of the program would run slowly, as JSON.
std::string slow_nodes(const aten::Program& program, const ingot_build_options* options);

}  // namespace ingot::core::api
