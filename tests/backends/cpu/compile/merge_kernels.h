// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "loops/kernel.h"

namespace ingot::core::cpu::test {

// One kernel that runs the stages of all of them, each on its own buffers, which follow each other. Their
// parallel loops have equal extents.
loops::Kernel merge_kernels(std::span<const loops::Kernel> kernels);

}  // namespace ingot::core::cpu::test
