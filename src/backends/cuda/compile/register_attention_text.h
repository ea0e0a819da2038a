// SPDX-License-Identifier: Apache-2.0
// Attention of at most eight queries per head of keys, as in decoding, with keys and values in registers.
#pragma once

#include <string>

namespace ingot::core::cuda {

// attend() for kFewRows queries, by kWarpKeys warps. With several splits, bulk_copy_functions() are needed
// too.
std::string register_attention_body(int splits, bool has_new_rows);

}  // namespace ingot::core::cuda
