// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/tensor_core_types.h"

namespace ingot::core::cuda {

bool has_tensor_cores(DType dtype) { return is_half(dtype) || dtype == DType::kF32; }

int64_t chunk_of(DType dtype) {
  constexpr int64_t kBits = 128;
  return kBits / bit_width(dtype);
}

}  // namespace ingot::core::cuda
