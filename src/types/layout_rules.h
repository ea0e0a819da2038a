// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "types/layout.h"

namespace ingot::core {

// Whether the layout gives each logical index of `rank` dims its own element of storage: row-major, or every
// dim is there, whole or split into blocks of which each starts where the next smaller one ends.
bool is_bijection(const Layout& layout, size_t rank);

}  // namespace ingot::core
