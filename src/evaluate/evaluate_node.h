// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "evaluate/evaluate.h"

namespace ingot::core {

// `evaluate` with symbols already bound, for nested graphs and decompositions.
Evaluation evaluate_with(const Graph& graph, std::span<const Tensor> inputs, const TensorMap& weights,
                         const SymbolValues& symbols);

}  // namespace ingot::core
