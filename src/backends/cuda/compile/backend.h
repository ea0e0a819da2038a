// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/backend.h"

namespace ingot::core::cuda {

// The CUDA compiler: Loop IR as CUDA C++, compiled by NVRTC on machines with or without a GPU.
const Backend& backend();

}  // namespace ingot::core::cuda
