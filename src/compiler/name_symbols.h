// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "importers/aten/imported.h"
#include "types/predicate.h"

namespace ingot::core {

// Calls the symbols that torch numbered (s77, u3) s0, s1, ... in order of appearance, so that an export that
// numbers them otherwise makes the same engine.
void name_symbols(aten::Imported& model);

Predicate renamed(Predicate condition, const std::map<std::string, Dim>& symbols);

}  // namespace ingot::core
