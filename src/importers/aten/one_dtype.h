// SPDX-License-Identifier: Apache-2.0
// Calls whose operands must have one dtype. Torch's rules for shapes do not compare them, so that programs of
// mixed dtypes can be traced, exported and saved; its kernels refuse them.
#pragma once

#include "importers/aten/converters/call.h"

namespace ingot::core::aten {

// Throws UnsupportedError naming the node and both operands if torch's kernels refuse their dtypes.
void require_one_dtype(Call& call);

}  // namespace ingot::core::aten
