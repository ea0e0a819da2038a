// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "backends/backend.h"
#include "compiler/options.h"
#include "importers/aten/import.h"

namespace ingot::core {

// Canonical text of everything that determines a build, except the values of weights: engines of builds with
// equal keys differ only in weights and in reported lines of the model. Contains constants and initial states
// as values or SHA-256. `model` is as imported, with the requested ranges applied, before any pass.
std::string engine_key(const aten::Program& program, const aten::Imported& model, const Backend& backend,
                       const CompileOptions& options);

}  // namespace ingot::core
