// SPDX-License-Identifier: Apache-2.0
#include "passes/replace_all_uses.h"

#include <utility>

namespace ingot::core {

void replace_all_uses(Graph& graph, Value* from, Value* to) {
  const bool is_new = to->users.empty() && to->producer != nullptr && !graph.is_output(to);
  graph.replace_uses(from, to);
  if (!is_new) return;
  std::swap(from->name, to->name);  // no other value ever gets a name that the graph keeps
  graph.rename(from, to->name + "_before");
}

}  // namespace ingot::core
