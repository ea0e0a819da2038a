// SPDX-License-Identifier: Apache-2.0
#include "passes/passes.h"
#include "passes/simplify/rules.h"

namespace ingot::core {
namespace {

rewriting::Tables tables_of_recognize_compositions() {
  return {rewriting::activation_rules(), rewriting::norm_rules(), rewriting::attention_rules()};
}

}  // namespace

Graph recognize_compositions(Graph graph, Rewrites& rewrites) {
  return rewriting::rewrite(std::move(graph), tables_of_recognize_compositions(), rewrites);
}

std::vector<std::string_view> rules_of_recognize_compositions() {
  return rewriting::names_of(tables_of_recognize_compositions());
}

}  // namespace ingot::core
