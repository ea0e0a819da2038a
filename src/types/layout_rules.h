// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "types/layout.h"

namespace ingot::core {

// Whether the layout stores each logical index of `rank` dims exactly once: row-major, or every dim present,
// whole or split into blocks each of which starts where the next smaller one ends.
bool is_bijection(const Layout& layout, size_t rank);

}  // namespace ingot::core
