// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "backends/backend.h"
#include "passes/pipeline.h"

namespace ingot::core {

// The pass table of a build: the passes of every target, parameterized by the backend, and the backend's own.
// The backend must outlive the table.
std::vector<Pass> pipeline_for(const Backend& backend, const Target& target);

}  // namespace ingot::core
