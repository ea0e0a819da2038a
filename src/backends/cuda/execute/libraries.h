// SPDX-License-Identifier: Apache-2.0
// Whether the libraries that steps call are here.
#pragma once

#include "backends/cuda/images/library.h"

namespace ingot::core::cuda {

// The version; 0: it cannot be used, and `reason` says why.
int64_t find_library(const Library& library, const char** reason);

}  // namespace ingot::core::cuda
