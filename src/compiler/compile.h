// SPDX-License-Identifier: Apache-2.0
// From a program of ATen calls to an engine's data, top to bottom. api/compiler/build.cpp reads programs, and
// prepares and writes engines.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "backends/backend.h"
#include "compiler/build_report.h"
#include "compiler/compile_hooks.h"
#include "compiler/options.h"
#include "engine/engine_data.h"
#include "importers/aten/import.h"
#include "importers/aten/imported.h"
#include "importers/aten/program/aten_graph.h"

namespace ingot::core {

aten::ImportOptions import_options(const CompileOptions& options);

// Throws UnsupportedError if a node cannot run here, UserError on bad models and options. The weights of the
// result are in the `original` form: its init program has not run (runtime/prepare.h does that).
std::shared_ptr<EngineData> compile(const aten::Program& program, const CompileOptions& options,
                                    std::span<const Backend* const> backends, const CompileHooks& hooks = {},
                                    BuildReport* report = nullptr);

// The same for a model in our own operators, created by `import`; `program` provides only names and trees.
std::shared_ptr<EngineData> compile_model(const aten::Program& program,
                                          const std::function<aten::Imported()>& import,
                                          const CompileOptions& options,
                                          std::span<const Backend* const> backends,
                                          const CompileHooks& hooks = {}, BuildReport* report = nullptr);

// The nodes of the program that an engine would run slowly, by the passes before code generation only. Throws
// like compile.
std::vector<SlowNode> find_slow(const aten::Program& program, const CompileOptions& options,
                                std::span<const Backend* const> backends);

}  // namespace ingot::core
