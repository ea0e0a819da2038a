// SPDX-License-Identifier: Apache-2.0
// Ranges of NVTX, which tools such as Nsight Systems show. Nothing happens where no tool watches the process,
// or if Ingot was built without the header of NVTX.
#pragma once

namespace ingot::core::cuda {

void push_range(const char* name);
void pop_range();

}  // namespace ingot::core::cuda
