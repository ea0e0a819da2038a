// SPDX-License-Identifier: Apache-2.0
#include "passes/replace_all_uses.h"

namespace ingot::core {

void replace_all_uses(Graph& graph, Value* from, Value* to) {
  const bool is_new = to->users.empty() && to->producer != nullptr && !graph.is_output(to);
  graph.replace_uses(from, to);
  if (!is_new) return;
  const std::string name = from->name;
  graph.rename(from, name + "_before");
  graph.rename(to, name);
}

}  // namespace ingot::core
