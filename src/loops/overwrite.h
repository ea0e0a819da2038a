// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "loops/kernel.h"

namespace ingot::core::loops {

// Buffers that may share memory with the only stored buffer, because each of their elements is read only by
// the point that stores the same element, before the store, and no element is stored twice. Conservative.
std::vector<uint32_t> overwritable_buffers(const Kernel& kernel);

}  // namespace ingot::core::loops
