// SPDX-License-Identifier: Apache-2.0
// Dtypes and reductions as CUDA C++.
#pragma once

#include <string>
#include <string_view>

#include "loops/kernel.h"

namespace ingot::core::cuda {

std::string_view type_name(DType arithmetic);  // "f32"
// The type of a buffer's elements in memory; UnsupportedError INGOT-N602 for four-bit dtypes.
std::string_view storage_name(DType stored);

// "Halves" or "Floats", of the prelude: vectors of f16 and bf16, and of f32.
std::string_view vector_name(DType stored);
// The type of `wide` contiguous elements that templates load at once: "Packed" for eight halves.
std::string group_of(DType stored, int wide);

std::string_view reduction_name(loops::Combine combine);  // "Add", of the prelude
std::string identity_text(loops::Combine combine, DType arithmetic);

}  // namespace ingot::core::cuda
