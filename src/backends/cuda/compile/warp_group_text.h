// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace ingot::core::cuda {

// Copies of boxes by tensor maps, and barriers that wait for them.
std::string_view bulk_copy_functions();
// The same, and products of warp groups (wgmma), for sm_90a.
std::string warp_group_functions(int columns, bool bf16);
// multiply_tile of contractions whose operands have tensor maps, and what becomes of its sums: see the sketch
// in warp_group_text.cpp. `splits`: blocks of a cluster.
std::string warp_group_body(int splits);

}  // namespace ingot::core::cuda
