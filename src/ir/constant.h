// SPDX-License-Identifier: Apache-2.0
// The only operator that graphs create themselves; ops/ops.def lists it with the others.
#pragma once

#include "ir/op.h"

namespace ingot::core::ops {

extern const Op constant;  // its value is the node's `literal`

}  // namespace ingot::core::ops
