// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace ingot::core::cuda {

// The beginning of every generated kernel: storage formats, the scalar semantics of Loop IR, reductions.
std::string_view prelude();

}  // namespace ingot::core::cuda
