// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "compiler/options.h"

namespace ingot::core {

// "ids:1x128,mask:1..16x1..8..256": a dim is a number, least..most, or least..typical..most. A scalar is
// "x:". UserError INGOT-U005 shows the part that is wrong.
std::vector<DimProfile> parse_shapes(std::string_view text);

}  // namespace ingot::core
