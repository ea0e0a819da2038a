// SPDX-License-Identifier: Apache-2.0
// f32 products on tensor cores, which multiply values of 11 significant bits (TF32).
#pragma once

#include <string>
#include <string_view>

namespace ingot::core::cuda {

// f32 fragments and their products: a value is the sum of two parts of 11 and 12 bits, and three of the four
// products of these parts are added up (Ootomo and Yokota, 2022, arXiv 2203.03341); or, if `rounded`, a
// single product of values rounded to TF32.
std::string float_fragment_functions(bool rounded);

// multiply_tiles and mend_sums of an f32 contraction.
std::string_view products_of_floats();

}  // namespace ingot::core::cuda
