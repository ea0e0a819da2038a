// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "backends/backend.h"

namespace ingot::core::cuda {

// This backend's rows of the pass table.
std::vector<Pass> own_passes(const Target& target);

}  // namespace ingot::core::cuda
