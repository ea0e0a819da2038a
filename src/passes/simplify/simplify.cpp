// SPDX-License-Identifier: Apache-2.0
#include "passes/passes.h"
#include "passes/simplify/rules.h"

namespace ingot::core {
namespace {

rewriting::Tables tables_of_simplify() {
  return {rewriting::algebra_rules(),     rewriting::logic_rules(), rewriting::range_rules(),
          rewriting::conversion_rules(),  rewriting::view_rules(),  rewriting::join_rules(),
          rewriting::quantization_rules()};
}

}  // namespace

Graph simplify(Graph graph, Rewrites& rewrites) {
  return rewriting::rewrite(std::move(graph), tables_of_simplify(), rewrites);
}

std::vector<std::string_view> rules_of_simplify() { return rewriting::names_of(tables_of_simplify()); }

}  // namespace ingot::core
