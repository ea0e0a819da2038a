// SPDX-License-Identifier: Apache-2.0
// Diagonals and windows, for the converters that need them.
#pragma once

#include "importers/aten/converters/call.h"

namespace ingot::core::aten {

// The elements whose index in dim `second` is that in dim `first` plus `offset`; both dims are removed,
// theirs becomes the last.
core::Value* diagonal_of(Call& call, core::Value* x, size_t first, size_t second, int64_t offset);

// Windows of `size` elements of dim `axis`, `step` apart: their number takes the place of the dim, and the
// elements of each become the last dim. Checks that there is one.
core::Value* windows_of(Call& call, core::Value* x, size_t axis, int64_t size, int64_t step);

}  // namespace ingot::core::aten
