// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace ingot::core {

// The rows of all_to_all per rank, "2,3,1" of a tensor of so many, or "": equal numbers. Throws as
// require_fit if they are not.
std::vector<size_t> rows_by_rank(const std::string& text, size_t total, size_t ranks);

}  // namespace ingot::core
