// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "passes/pass.h"

namespace ingot::core {

// Every pass of the tables of all backends, once, for a target that takes whatever it is offered.
std::vector<Pass> all_passes();

}  // namespace ingot::core
