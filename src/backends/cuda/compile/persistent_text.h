// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace ingot::core::cuda {

// multiply_persistently and finish_from_registers, of contractions whose blocks take several tiles: see the
// sketches in persistent_text.cpp.
std::string persistent_body();

}  // namespace ingot::core::cuda
