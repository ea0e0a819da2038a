// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace ingot::core::cuda {

// The body of a product with few rows, which reads b at memory bandwidth; contraction.cpp declares what it
// needs.
std::string_view row_body();

}  // namespace ingot::core::cuda
