// SPDX-License-Identifier: Apache-2.0
#include "passes/passes.h"
#include "passes/simplify/rules.h"

namespace ingot::core {

Graph simplify(Graph graph) {
  const std::span<const rewriting::Rule> tables[] = {
      rewriting::algebra_rules(), rewriting::logic_rules(), rewriting::conversion_rules(),
      rewriting::view_rules(),    rewriting::join_rules(),  rewriting::quantization_rules()};
  return rewriting::rewrite(std::move(graph), tables);
}

}  // namespace ingot::core
