// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace ingot::core::cuda {

// multiply_in_turn and finish_in_turn of contractions whose tiles two groups of warps take in turns: see the
// sketch in turns_text.cpp.
std::string turns_body();

}  // namespace ingot::core::cuda
