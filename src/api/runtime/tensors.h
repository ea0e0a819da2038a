// SPDX-License-Identifier: Apache-2.0
// ingot_tensor as the runtime knows it.
#pragma once

#include "api/runtime/checks.h"
#include "runtime/arguments.h"

namespace ingot::core::api {

// UserError INGOT-U016 unknown dtype, INGOT-U012 no shape, or no data of a tensor that has elements;
// UnsupportedError INGOT-N301 memory that is not the host's.
Argument to_argument(const ingot_tensor& tensor);

// Borrowed; strides are filled in where the tensor is dense.
TensorView to_view(const ingot_tensor& tensor);

}  // namespace ingot::core::api
