// SPDX-License-Identifier: Apache-2.0
// Generic kernels: any Loop IR as machine code.
#pragma once

#include "backends/cpu/compile/prepare/prepared_kernel.h"
#include "engine/program.h"

namespace ingot::core::cpu {

Image emit_kernel(const PreparedKernel& prepared);

}  // namespace ingot::core::cpu
