// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "importers/aten/imported.h"
#include "types/predicate.h"

namespace ingot::core {

// Gives all symbols of a model other names: those of its canonical graph, so that neither a model that names
// its sizes nor torch, which numbers them, makes another engine.
void name_symbols(aten::Imported& model, const std::map<std::string, Dim>& names);

}  // namespace ingot::core
