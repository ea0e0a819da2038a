// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "engine/program.h"

namespace ingot::core {

// In a program whose buffers are on a device: routines, and kernels of other backends than `device`, run on
// the host. What they alone use is there; they read weights there too; of other values they work on copies,
// to and from which steps copy: once per value, before consecutive such steps, and back behind them, if the
// device or the caller reads it. `symbols`: of the outermost graph.
void give_host_copies(Program& program, const SymbolTable& symbols, std::string_view device);

}  // namespace ingot::core
