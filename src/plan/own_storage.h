// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/program.h"

namespace ingot::core {

// The storage of a buffer with memory of its own: in the arena, or allocated once a step has bound its size.
// `symbols`: of the outermost graph.
Storage own_storage(const TensorType& type, const SymbolTable& symbols);

}  // namespace ingot::core
