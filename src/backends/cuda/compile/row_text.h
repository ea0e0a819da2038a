// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace ingot::core::cuda {

// The body of a product with few rows, which reads b at memory bandwidth; contraction.cpp declares what it
// needs. By tensor cores: of halves; otherwise each lane multiplies and adds.
std::string row_body(bool by_tensor_cores);

}  // namespace ingot::core::cuda
