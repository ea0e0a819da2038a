// SPDX-License-Identifier: Apache-2.0
// What an engine file may say of a library call.
#pragma once

#include <span>

#include "backends/cuda/images/library_call.h"
#include "types/tensor_type.h"

namespace ingot::core::cuda {

// Whether a launch that calls a library has the counts and ranges of one, for so many arguments.
bool is_valid_library_call(const Launch& launch, size_t buffers);
// Whether it stays within arguments of these types, whatever the values of symbols.
bool fits_library_call(const Launch& launch, std::span<const TensorType* const> arguments);

}  // namespace ingot::core::cuda
