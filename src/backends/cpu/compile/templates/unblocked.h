// SPDX-License-Identifier: Apache-2.0
// Blocked layouts as permutations: a dim of whole blocks is two dims, the block and the index within it.
#pragma once

#include <optional>

#include "types/tensor_type.h"

namespace ingot::core::cpu {

// The types of both sides of a relayout; the same elements in the same storage.
struct RelayoutSides {
  TensorType from, to;
};

// The same relayout between permutations: dims that one side divides into blocks are two dims on both.
// Nothing if a dim is divided otherwise, or its size is not a multiple of the block's.
std::optional<RelayoutSides> unblocked(RelayoutSides sides);

}  // namespace ingot::core::cpu
