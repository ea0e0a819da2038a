// SPDX-License-Identifier: Apache-2.0
// The pass table: every pass of a build, in order.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "passes/pass.h"
#include "passes/target_passes.h"

namespace ingot::core {

// The passes of every target, with those of one backend among them. A pass may appear twice.
std::vector<Pass> pipeline(const TargetRules& rules, std::vector<Pass> of_backend = {});

const Pass* find_pass(std::span<const Pass> table, std::string_view name);  // null if there is none

}  // namespace ingot::core
