// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace ingot::core::cuda {

// Device functions for templates on tensor cores: copies into shared memory that overlap with
// arithmetic, fragments, and the product of two fragments.
std::string_view tensor_core_functions();

// multiply_tile of a contraction, with `products`: the function multiply_tiles of its dtype, and mend_sums;
// contraction.cpp declares what it uses.
std::string contraction_body(std::string_view products);
std::string_view products_of_halves();
// The sum over a part of the depth by scalar arithmetic, for all bodies.
std::string_view sum_one_by_one();
// Operands that are not aligned, and accumulators in shared memory, of which each block of a cluster has a
// share.
std::string_view sums_of_tiles();

}  // namespace ingot::core::cuda
