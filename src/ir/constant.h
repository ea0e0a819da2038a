// SPDX-License-Identifier: Apache-2.0
// The one operator that graphs make by themselves; ops/ops.def lists it with the others.
#pragma once

#include "ir/op.h"

namespace ingot::core::ops {

extern const Op constant;  // its value is the node's `literal`

}  // namespace ingot::core::ops
