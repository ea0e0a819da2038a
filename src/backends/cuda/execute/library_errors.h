// SPDX-License-Identifier: Apache-2.0
// DeviceErrors INGOT-D405 of the libraries that steps call.
#pragma once

#include <string>

#include "backends/cuda/images/library.h"

namespace ingot::core::cuda {

// The library cannot be used here.
[[noreturn]] void throw_no_library(const Library& library, const std::string& reason);
// One of its functions failed.
[[noreturn]] void throw_refused(const Library& library, const std::string& call, const std::string& error);

}  // namespace ingot::core::cuda
