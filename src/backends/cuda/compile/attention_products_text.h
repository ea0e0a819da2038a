// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace ingot::core::cuda {

// For attention: multiply_scores(scores, q, k, warp_row, own) adds the products of a warp's queries and its
// keys of a part, multiply_values(values, scores, v, own) those of its weights and values.
std::string_view attention_products_of_halves();
std::string_view attention_products_of_floats();  // needs float_fragment_functions

}  // namespace ingot::core::cuda
