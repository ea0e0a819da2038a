// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "importers/onnx/call.h"

namespace ingot::core::onnx {

// The value as float8, where too large numbers become the largest: UnsupportedError INGOT-N541 if the node
// says that they do not.
Value* to_float8(Call& call, Value* value, DType dtype);

}  // namespace ingot::core::onnx
