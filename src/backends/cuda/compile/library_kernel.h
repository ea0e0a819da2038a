// SPDX-License-Identifier: Apache-2.0
// Library calls as tactics beside kernels of our own.
#pragma once

#include <string_view>

#include "backends/backend.h"
#include "backends/cuda/images/library_call.h"

namespace ingot::core::cuda {

// The version of the library here, opened at the first use; 0: there is none, or it is too old.
int64_t library_version(const Library& library);
// The same, and 0 if no tactic of the target calls it: libraries are timed, not predicted, and cuDNN's
// convolutions lose infinities and NaN or spread them.
int64_t library_version(const Library& library, const Target& target);

// `launch` as a way to compute `node`.
LoweredKernel library_kernel(const Library& library, const Node& node, std::string_view architecture,
                             Launch launch);

}  // namespace ingot::core::cuda
