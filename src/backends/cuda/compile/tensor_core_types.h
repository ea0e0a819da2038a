// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "types/dtype.h"

namespace ingot::core::cuda {

// Operand dtypes that the templates of contractions and attention support.
bool has_tensor_cores(DType dtype);
// Elements in 16 bytes, the width of a copy.
int64_t chunk_of(DType dtype);

}  // namespace ingot::core::cuda
