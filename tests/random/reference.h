// SPDX-License-Identifier: Apache-2.0
// What a graph may give: by the interpreter, and again with noise of rounding size in every node that rounds.
//
// The noise shows how much an element depends on roundings that no one promises: where sums cancel it is
// large, where a comparison or a floor decides it changes everything. What is computed exactly has none.
#pragma once

#include <vector>

#include "tests/random/case.h"

namespace ingot::core::random_graphs {

// One run after another: each starts with the states that the last one left.
using Trajectory = std::vector<Evaluation>;

struct Reference {
  Trajectory exact;               // as the interpreter computes it
  std::vector<Trajectory> noisy;  // with noise
};
// `rounds`: how often each kind of noise is tried.
Reference make_reference(const Case& test, int rounds = 1);

// Whether the sizes of a run are some that an operator refuses, such as the least of no elements.
bool breaks_bounds(const Case& test);

// What every value of the graph is in each run, without noise.
std::vector<std::map<const Value*, Tensor>> all_values(const Case& test);

// "" if each element is one that the reference allows; else where and how much it differs.
std::string difference(const Reference& reference, const Trajectory& results);

}  // namespace ingot::core::random_graphs
