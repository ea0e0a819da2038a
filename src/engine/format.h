// SPDX-License-Identifier: Apache-2.0
// Which format of the file an engine needs: the earliest whose readers can run it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/program.h"

namespace ingot::core {

// Whether an input binds a symbol that no input has as a dim by itself.
bool has_linear_sizes(const Program& main);
uint32_t format_of(const Program& main, size_t levels);

}  // namespace ingot::core
