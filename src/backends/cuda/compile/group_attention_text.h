// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "backends/cuda/compile/attention_tile.h"

namespace ingot::core::cuda {

// The products of attention by groups of warps: kKeys and kValueWidth columns.
std::string group_attention_functions(int keys, int value_width, bool bf16);
// attend() by groups of warps, of 64 queries each.
std::string group_attention(GroupMask mask);

}  // namespace ingot::core::cuda
