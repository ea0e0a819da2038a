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

// What rounding explains, relative to the larger of 1 and the value.
constexpr double kTolerance = 1e-4;
// Differences between two evaluations beyond `tolerance`; "" if there are none.
std::string difference(const Evaluation& a, const Evaluation& b, double tolerance = kTolerance);

}  // namespace ingot::core
