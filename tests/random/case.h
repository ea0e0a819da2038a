// SPDX-License-Identifier: Apache-2.0
// One random test: a graph, what it is called with, and how it is compiled.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "evaluate/evaluate.h"
#include "support/cpu_features.h"

namespace ingot::core::random_graphs {

struct Case {
  Graph graph;
  TensorMap sources;                      // weights, and states before the first run, by name
  std::vector<std::vector<Tensor>> runs;  // the inputs of each call, one after another with the same states
  bool strict = false;                    // numerics

  Case clone() const { return {graph.clone(), sources, runs, strict}; }
};

struct Build {
  int level = 3;
  CpuFeatures features;         // of the backend "cpu"
  std::string backend = "cpu";  // or "fake"
  uint64_t cut = 0;             // of "fake": which nodes run on its host, at random; 0: none
};
std::string to_string(const Build& build);

// The case as a text that `read_case` reads: a graph in text form under comments that hold all values, in
// hexadecimal digits of their bytes.
std::string write_case(const Case& test);
Case read_case(std::string_view text);

}  // namespace ingot::core::random_graphs
