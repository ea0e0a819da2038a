// SPDX-License-Identifier: Apache-2.0
// Diagonals, for the converters that need one.
#pragma once

#include "importers/aten/converters/call.h"

namespace ingot::core::aten {

// The elements whose index in dim `second` is that in dim `first` plus `offset`; both dims are removed,
// theirs becomes the last.
core::Value* diagonal_of(Call& call, core::Value* x, size_t first, size_t second, int64_t offset);

}  // namespace ingot::core::aten
