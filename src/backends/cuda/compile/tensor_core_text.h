// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace ingot::core::cuda {

// Device functions for templates that multiply by tensor cores: copies into shared memory that go on beside
// arithmetic, fragments, and the product of two fragments.
std::string_view tensor_core_functions();

// multiply_tile of a contraction, with `products`: the function multiply_tiles of its dtype, and mend_sums;
// contraction.cpp says what it finds declared.
std::string contraction_body(std::string_view products);
std::string_view products_of_halves();
// The sum over a part of the depth by ordinary arithmetic, for all bodies.
std::string_view sum_one_by_one();
// What follows it, or the body for warp groups: operands that are not aligned, and sums that blocks share.
std::string_view sums_of_tiles();

}  // namespace ingot::core::cuda
