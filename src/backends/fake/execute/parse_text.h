// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "loops/kernel.h"

namespace ingot::core::loops {

// The kernel of a text that `to_string` printed; it verifies, and prints the same text. What texts leave out
// is lost: the typical sizes and upper bounds of symbols, and the names of stages that store. UserError
// INGOT-U110 starts with the line and column of a mistake.
Kernel parse_kernel(std::string_view text);

}  // namespace ingot::core::loops
