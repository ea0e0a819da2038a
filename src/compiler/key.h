// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "backends/backend.h"
#include "compiler/options.h"
#include "importers/aten/import.h"

namespace ingot::core {

// Everything that decides what a build makes, but the values of weights, as one canonical text: builds with
// equal keys make engines that differ in weights and in what reports say of the model's lines, and in nothing
// else. Constants and initial states are in it as values or by SHA-256. `model` is as imported, with the
// asked-for ranges applied, before any pass.
std::string engine_key(const aten::Program& program, const aten::Imported& model, const Backend& backend,
                       const CompileOptions& options);

}  // namespace ingot::core
