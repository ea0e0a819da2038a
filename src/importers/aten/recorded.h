// SPDX-License-Identifier: Apache-2.0
// Checks converters: compares their results with the program's records.
#pragma once

#include "importers/aten/converters/call.h"

namespace ingot::core::aten {

// The type of what a recorded tensor is imported as: pairs of reals, if it is complex.
TensorType imported_type(const TensorMeta& meta);

// Throws UnsupportedError INGOT-N523 naming the node if `made` differs in dtype or shape, or in the number of
// results. Sizes are equal if their ranges prove it, or at a sample of all symbols.
void require_recorded(const Node& node, size_t result, const Value& recorded, const ImportedValue& made,
                      const SymbolTable& symbols);

}  // namespace ingot::core::aten
