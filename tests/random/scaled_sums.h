// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "evaluate/evaluate.h"

namespace ingot::core::random_graphs {

// A scaled_linear node as its kernels compute it: each block of the depth is summed, then multiplied by its
// scale. An infinite or a tiny scale makes something else of that than of every weight by itself.
struct ScaledSums {
  Tensor sums;        // f32, of the shape of the result
  bool may_overflow;  // an element, in some order of a block's terms
};
ScaledSums scaled_sums(const Node& node, std::span<const Tensor* const> operands,
                       const SymbolValues& symbols);

}  // namespace ingot::core::random_graphs
