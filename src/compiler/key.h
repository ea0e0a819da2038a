// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "backends/backend.h"
#include "compiler/canonical_graph.h"
#include "compiler/options.h"
#include "importers/aten/imported.h"
#include "partition/engine_backends.h"

namespace ingot::core {

// The structure of a build: everything that decides what an engine computes and how, but the values of
// weights, as one text. Isomorphic models have equal texts, whatever their inputs, sizes and weights are
// called and in whatever order their nodes stand. Constants are in it as values or by SHA-256. `model` is as
// imported, with the asked-for ranges applied, before any pass; its symbols are called as in `canonical`, its
// graph's canonical form.
// `tactics`: what levels that time tactics have found out so far; "" for other levels.
std::string engine_key(const aten::Imported& model, const CanonicalGraph& canonical,
                       const EngineBackends& backends, const CompileOptions& options,
                       std::string_view tactics = {});

// Whether the options choose nodes by name, so that the names of a model's calls decide too.
bool names_decide(const CompileOptions& options);

}  // namespace ingot::core
