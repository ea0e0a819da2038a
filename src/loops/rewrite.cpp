// SPDX-License-Identifier: Apache-2.0
#include "loops/rewrite.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace ingot::core::loops {
namespace {

using Visited = std::unordered_set<const ExprNode*>;

void visit_new(const Expr& expr, Visited& visited, const std::function<void(const Expr&)>& function) {
  if (!visited.insert(expr.get()).second) return;
  for (const Expr& operand : expr->operands) visit_new(operand, visited, function);
  function(expr);
}

using Rewritten = std::unordered_map<const ExprNode*, Expr>;

Expr rewrite_new(const Expr& expr, Rewritten& done, const std::function<Expr(const Expr&)>& function) {
  if (const auto found = done.find(expr.get()); found != done.end()) return found->second;
  std::vector<Expr> operands;
  operands.reserve(expr->operands.size());
  for (const Expr& operand : expr->operands) operands.push_back(rewrite_new(operand, done, function));
  Expr rebuilt = expr;
  if (operands != expr->operands) {
    auto copy = std::make_shared<ExprNode>(*expr);
    copy->operands = std::move(operands);
    rebuilt = std::move(copy);
  }
  return done.emplace(expr.get(), function(rebuilt)).first->second;
}

}  // namespace

void visit(const Expr& expr, const std::function<void(const Expr&)>& function) {
  Visited visited;
  visit_new(expr, visited, function);
}

Expr rewrite(const Expr& expr, const std::function<Expr(const Expr&)>& function) {
  Rewritten done;
  return rewrite_new(expr, done, function);
}

Expr substitute(const Expr& expr, const std::map<std::string, Dim>& replacements) {
  if (replacements.empty()) return expr;
  return rewrite(expr, [&](const Expr& node) -> Expr {
    if (node->index.empty()) return node;
    auto copy = std::make_shared<ExprNode>(*node);
    for (Dim& dim : copy->index) dim = core::substitute(dim, replacements);
    return copy;
  });
}

void visit_dims(const Stage& stage, const std::function<void(const Dim&)>& function) {
  const auto of_expression = [&](const Expr& expr) {
    visit(expr, [&](const Expr& node) { std::ranges::for_each(node->index, function); });
  };
  for (const Loop& loop : stage.loops) function(loop.extent);
  for (const Loop& loop : stage.reduce) function(loop.extent);
  for (const Binding& binding : stage.bindings) {
    of_expression(binding.value);
    function(binding.limit);
  }
  of_expression(stage.value);
  if (stage.store) std::ranges::for_each(stage.store->index, function);
}

bool uses_symbol(const Expr& value, const std::string& symbol) {
  bool found = false;
  visit(value, [&](const Expr& node) {
    for (const Dim& dim : node->index) found = found || std::ranges::count(dim.symbols(), symbol) > 0;
  });
  return found;
}

}  // namespace ingot::core::loops
