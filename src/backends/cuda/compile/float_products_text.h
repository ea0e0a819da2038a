// SPDX-License-Identifier: Apache-2.0
// Products of f32 by tensor cores, which multiply numbers of 11 bits (TF32).
#pragma once

#include <string>
#include <string_view>

namespace ingot::core::cuda {

// Fragments of f32 and their products: a number is the sum of two of 11 and 12 bits, and three of the four
// products of such parts are added up (Ootomo and Yokota, 2022, arXiv 2203.03341); or, if `rounded`, one
// product of numbers that are rounded to TF32.
std::string float_fragment_functions(bool rounded);

// multiply_tiles and mend_sums of a contraction of f32.
std::string_view products_of_floats();

}  // namespace ingot::core::cuda
