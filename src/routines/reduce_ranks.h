// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "types/dtype.h"

namespace ingot::core::routines {

// Reduces element i of all parts, in order, into element i of `result`, which is none of the parts. 16-bit
// floating-point numbers are summed in f32 and rounded once; NaN wins against everything. UserError
// INGOT-U332 for a reduction or dtype that there is not.
void reduce_ranks(std::string_view reduction, DType dtype, std::span<const std::byte* const> parts,
                  size_t elements, std::byte* result);

}  // namespace ingot::core::routines
