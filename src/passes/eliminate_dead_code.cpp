// SPDX-License-Identifier: Apache-2.0
#include "passes/passes.h"

namespace ingot::core {

Graph eliminate_dead_code(Graph graph) {
  graph.erase_dead_nodes();
  return graph;
}

}  // namespace ingot::core
