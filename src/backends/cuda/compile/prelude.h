// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace ingot::core::cuda {

// The beginning of every generated kernel: storage formats, the scalar semantics of Loop IR, reductions.
std::string prelude();

}  // namespace ingot::core::cuda
