// SPDX-License-Identifier: Apache-2.0
// Random values of sources: ordinary ones, and those that break kernels.
#pragma once

#include <random>

#include "types/tensor.h"
#include "types/tensor_type.h"

namespace ingot::core::random_graphs {

using Random = std::mt19937_64;

inline bool chance(Random& random, double probability) {
  return std::uniform_real_distribution<double>(0, 1)(random) < probability;
}
inline int64_t number(Random& random, int64_t low, int64_t high) {  // both included
  return std::uniform_int_distribution<int64_t>(low, high)(random);
}
template <typename List>
decltype(auto) pick(Random& random, const List& list) {
  return list[static_cast<size_t>(number(random, 0, static_cast<int64_t>(std::size(list)) - 1))];
}

struct Fill {
  enum class Kind {
    kPlain,     // from `low` to `high`
    kSpecial,   // also signed zeros, infinities, NaN, denormals, the largest and smallest
    kWhole,     // small whole numbers, where sums are exact and comparisons equal
    kDistinct,  // whole numbers below `bound`, different from each other along `axis`
    kIndex,     // whole numbers below `bound`
  };
  Kind kind = Kind::kPlain;
  double low = -2, high = 2;
  Dim bound = 1;
  size_t axis = 0;
};

Tensor random_tensor(const TensorType& type, const SymbolValues& symbols, const Fill& fill, Random& random);

}  // namespace ingot::core::random_graphs
