// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "passes/pass.h"

namespace ingot::core {

// What passes begin with. A clone gives no value that they add the name of a value of the model; what they
// add for no node belongs to none of the model's calls.
inline Split split_for_passes(const Graph& graph) {
  Split split{.init = Graph("init"), .main = graph.clone()};
  split.main.current_name.clear();
  split.main.current_source = {};
  split.main.current_side = Side::kAny;
  return split;
}

}  // namespace ingot::core
