// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "importers/aten/schema/aliases.h"

namespace ingot::core::aten {

// UnsupportedError INGOT-N525: the program writes a buffer or parameter and also reads part of the same
// memory through another one, a view that the model keeps. Two names of one whole tensor are one value
// (find_aliases) and no error.
void refuse_partly_shared_memory(const Graph& graph, const Aliases& aliases);

}  // namespace ingot::core::aten
