// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "backends/backend.h"
#include "compiler/options.h"
#include "importers/aten/imported.h"
#include "importers/aten/program/aten_graph.h"

namespace ingot::core {

// The structure of a build: everything that decides what an engine computes and how, but the values of
// weights, as one text. Isomorphic models have equal texts, whatever their inputs, sizes and weights are
// called and in whatever order their nodes stand. Constants are in it as values or by SHA-256. `model` is as
// imported, with the asked-for ranges applied, before any pass.
// `tactics`: what levels that time tactics have found out so far; "" for other levels.
std::string engine_key(const aten::Imported& model, const Backend& backend, const CompileOptions& options,
                       std::string_view tactics = {});

// The binding: what an engine adds to its structure. Names, trees, lines of the model, texts of checks, the
// order of nodes, literals, and initial states (by SHA-256).
std::string engine_binding(const aten::Program& program, const aten::Imported& model);

}  // namespace ingot::core
