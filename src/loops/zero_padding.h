// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "loops/kernel.h"

namespace ingot::core::loops {

// A kernel that stores zeros into the padding of a tensor of this type and nothing else; nullopt if its
// layout has no padding. Other kernels store logical elements only, and leave the padding uninitialized. Its
// one buffer is the tensor's storage: row-major, with the extents of the storage axes.
std::optional<Kernel> zero_padding(const TensorType& type);

}  // namespace ingot::core::loops
