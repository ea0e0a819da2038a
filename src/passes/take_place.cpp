// SPDX-License-Identifier: Apache-2.0
#include "passes/take_place.h"

namespace ingot::core {

void take_place(Graph& graph, Value* old, Value* value) {
  const bool is_new = value->users.empty() && value->producer != nullptr && !graph.is_output(value);
  graph.replace_uses(old, value);
  if (!is_new) return;
  const std::string name = old->name;
  graph.rename(old, name + "_before");
  graph.rename(value, name);
}

}  // namespace ingot::core
