// SPDX-License-Identifier: Apache-2.0
#include "ops/ops.h"

#include <algorithm>
#include <array>

namespace ingot::core::ops {

// ops.def lists the operators of models. target_forms.def lists those that only passes for a target create:
// they are declared in headers of their own, so that a new one does not rebuild everything.
#define OP(name) extern const Op name;
#include "ops/target_forms.def"
#undef OP

std::span<const Op* const> all_ops() {
  static const auto kOps = [] {
    std::array ops{
#define OP(name) &name,
#include "ops/ops.def"
#include "ops/target_forms.def"
#undef OP
    };
    std::ranges::sort(ops, {}, &Op::name);
    return ops;
  }();
  return kOps;
}

const Op* find_op(std::string_view name) {
  const auto ops = all_ops();
  const auto found = std::ranges::lower_bound(ops, name, {}, &Op::name);
  return found != ops.end() && (*found)->name == name ? *found : nullptr;
}

}  // namespace ingot::core::ops
