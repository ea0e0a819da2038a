// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "loops/kernel.h"

namespace ingot::core::loops {

// Buffers that the only stored buffer may share memory with, because each of their elements is read only by
// the point that stores the same element, before it does, and no element is stored twice. Says no where it is
// not sure.
std::vector<uint32_t> overwritable_buffers(const Kernel& kernel);

}  // namespace ingot::core::loops
