// SPDX-License-Identifier: Apache-2.0
// Checks converters: what one made of a node against what the program recorded of it.
#pragma once

#include "importers/aten/converters/call.h"

namespace ingot::core::aten {

// Throws UnsupportedError INGOT-N523 naming the node if `made` has another dtype or shape, or is another
// number. Sizes are equal if they are so by their ranges, or at a sample of all sizes.
void require_recorded(const Node& node, const Value& recorded, const ImportedValue& made,
                      const SymbolTable& symbols);

}  // namespace ingot::core::aten
