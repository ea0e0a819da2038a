// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/program.h"

namespace ingot::core {

// In a program whose buffers are on a device: routines work on copies of their operands and results on the
// host, to and from which steps copy. A copy is made once per value, and back only if the device or the
// caller reads it. `symbols`: of the outermost graph.
void give_host_copies(Program& program, const SymbolTable& symbols);

}  // namespace ingot::core
