// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "evaluate/evaluate.h"

namespace ingot::core {

// Values for everything that a graph reads: inputs, weights and states. The same graph gets the same values.
struct RandomInputs {
  std::vector<Tensor> inputs;
  TensorMap weights;
};
RandomInputs random_inputs(const Graph& graph);

// Differences between two evaluations beyond rounding; "" if there are none.
std::string difference(const Evaluation& a, const Evaluation& b);

}  // namespace ingot::core
