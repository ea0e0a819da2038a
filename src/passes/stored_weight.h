// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <utility>

#include "ir/graph.h"

namespace ingot::core {

// A weight that the graph dequantizes: (numbers - zero_point) * scale, rounded maybe, with an element of the
// scale for each block of the numbers. The values of a StoredWeight are new nodes at the insertion point.
struct StoredWeight {
  Value* numbers = nullptr;                        // [N, K], of a dtype narrower than 32 bits
  Value* scale = nullptr;                          // [N or 1, G], where G divides K
  Value* zero_point = nullptr;                     // the same; null: zeros
  std::optional<std::pair<double, double>> range;  // of the numbers, if the graph limits them
};

// What `weight`, a matrix [N, K] or (transposed) [K, N], was dequantized from; nothing if it was not.
std::optional<StoredWeight> stored_weight(Graph& graph, Value* weight, bool transposed);

}  // namespace ingot::core
