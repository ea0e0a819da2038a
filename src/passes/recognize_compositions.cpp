// SPDX-License-Identifier: Apache-2.0
#include "passes/passes.h"
#include "passes/simplify/rules.h"

namespace ingot::core {

Graph recognize_compositions(Graph graph) {
  const std::span<const rewriting::Rule> tables[] = {rewriting::activation_rules(), rewriting::norm_rules(),
                                                     rewriting::attention_rules()};
  return rewriting::rewrite(std::move(graph), tables);
}

}  // namespace ingot::core
