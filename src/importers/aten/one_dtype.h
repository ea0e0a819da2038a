// SPDX-License-Identifier: Apache-2.0
// Calls whose operands must have the same dtype. torch's shape rules do not check it, so programs of mixed
// dtypes can be traced, exported and saved; its kernels reject them.
#pragma once

#include "importers/aten/converters/call.h"

namespace ingot::core::aten {

// Throws UnsupportedError naming the node and both operands if torch's kernels reject their dtypes.
void require_one_dtype(Call& call);

}  // namespace ingot::core::aten
