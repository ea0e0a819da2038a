// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "backends/cuda/compile/attention_tile.h"

namespace ingot::core::cuda {

struct WarpAttention {
  std::string_view products;
  bool by_bulk_copies, has_new_rows;
  int splits;  // with several, bulk_copy_functions() are needed too
};

// The body of attention by warps; attention.cpp declares what it needs. With new rows of a cache, the copies
// of the other keys and values begin before the kernel waits for the one before.
std::string attention_body(const WarpAttention& form);
// The same for groups of warps (sm_90a), whose operands come by bulk copies.
std::string group_attention_body(GroupMask mask);

}  // namespace ingot::core::cuda
