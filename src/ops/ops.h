// SPDX-License-Identifier: Apache-2.0
// All operator records. `ops.def` is the list; each record is defined in src/ops/<op or family>.cpp.
#pragma once

#include <span>
#include <string_view>

#include "ir/graph.h"
#include "loops/kernel.h"

namespace ingot::core::ops {

#define OP(name) extern const Op name;
#include "ops/ops.def"
#undef OP

std::span<const Op* const> all_ops();      // sorted by name
const Op* find_op(std::string_view name);  // null if there is none

}  // namespace ingot::core::ops
