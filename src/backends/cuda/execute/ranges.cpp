// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/execute/ranges.h"

#ifdef INGOT_HAS_NVTX
#include <nvtx3/nvToolsExt.h>
#endif

namespace ingot::core::cuda {

#ifdef INGOT_HAS_NVTX
void push_range(const char* name) { nvtxRangePushA(name); }
void pop_range() { nvtxRangePop(); }
#else
void push_range(const char*) {}
void pop_range() {}
#endif

}  // namespace ingot::core::cuda
