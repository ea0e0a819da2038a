// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "types/dtype.h"

namespace ingot::core::cuda {

// Dtypes of operands that the templates of contractions and attention multiply.
bool has_tensor_cores(DType dtype);
// Neighbours that a copy of 16 bytes brings.
int64_t chunk_of(DType dtype);

}  // namespace ingot::core::cuda
