// SPDX-License-Identifier: Apache-2.0
#include "ops/ops.h"

#include <algorithm>
#include <array>

namespace ingot::core::ops {
namespace {

// The order of ops.def, which is kept sorted.
constexpr std::array kOps = {
#define OP(name) &name,
#include "ops/ops.def"
#undef OP
};

}  // namespace

std::span<const Op* const> all_ops() { return kOps; }

const Op* find_op(std::string_view name) {
  const auto found = std::ranges::lower_bound(kOps, name, {}, &Op::name);
  return found != kOps.end() && (*found)->name == name ? *found : nullptr;
}

}  // namespace ingot::core::ops
