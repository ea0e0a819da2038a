// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "ingot/ingot.h"

namespace ingot::cli {

// Of a .safetensors file or, with the compiler, of a .pt2. Throws CommandError.
ingot_tensors* open_tensors(const std::string& path);

}  // namespace ingot::cli
