// SPDX-License-Identifier: Apache-2.0
// Conversion of ingot_tensor.
#pragma once

#include "api/runtime/checks.h"
#include "runtime/arguments.h"

namespace ingot::core::api {

// UserError INGOT-U016 unknown dtype, INGOT-U012 no shape, or no data although the tensor has elements,
// INGOT-U101 addresses that overflow;
// UnsupportedError INGOT-N301 memory outside of the host.
Argument to_argument(const ingot_tensor& tensor);

// Borrowed; strides are filled in for dense tensors.
TensorView to_view(const ingot_tensor& tensor);

}  // namespace ingot::core::api
