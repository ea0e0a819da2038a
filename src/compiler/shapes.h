// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "compiler/dim_profile.h"

namespace ingot::core {

// "ids:1x128,mask:1..16x1..8..256": a dim is an integer, min..max, or min..typical..max. A scalar is "x:".
// UserError INGOT-U005 contains the malformed part.
std::vector<DimProfile> parse_shapes(std::string_view text);

}  // namespace ingot::core
