// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace ingot::core::cuda {

// The body of attention, with its products; attention.cpp declares what it needs.
std::string attention_body(std::string_view products, bool by_bulk_copies);
// The same for groups of warps (sm_90a), whose operands come by bulk copies.
std::string group_attention_body();

}  // namespace ingot::core::cuda
