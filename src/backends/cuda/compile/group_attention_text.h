// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace ingot::core::cuda {

// The products of attention by groups of warps: kKeys and kValueWidth columns.
std::string group_attention_functions(int keys, int value_width, bool bf16);
// attend() by groups of warps, of 64 queries each. `mask_in_chunks`: rows of a mask of bools are read 16 keys
// at a time, from mask_place(x, batch, row, key) on.
std::string group_attention(bool mask_in_chunks);

}  // namespace ingot::core::cuda
