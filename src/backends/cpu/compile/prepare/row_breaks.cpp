// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/prepare/row_breaks.h"

#include <algorithm>
#include <optional>
#include <set>

#include "loops/index_facts.h"
#include "loops/rewrite.h"

namespace ingot::core::cpu {
namespace {

using loops::Binary;
using loops::Expr;
using loops::ExprNode;
using loops::Kernel;

constexpr size_t kMostBreaks = 3;      // the code is repeated for each part
constexpr int64_t kMostNodes = 100;    // of that code
constexpr int64_t kFewestVectors = 4;  // of a row whose parts are not whole vectors

// Comparisons that decide choices.
std::vector<const ExprNode*> comparisons_of(const Kernel& kernel) {
  std::vector<const ExprNode*> found;
  const std::function<void(const Expr&)> add = [&](const Expr& condition) {
    const bool joins = condition->kind == ExprNode::Kind::kBinary &&
                       (condition->binary == Binary::kAnd || condition->binary == Binary::kOr);
    if (joins || condition->kind == ExprNode::Kind::kUnary) std::ranges::for_each(condition->operands, add);
    if (condition->kind == ExprNode::Kind::kBinary && !joins) found.push_back(condition.get());
  };
  for (const loops::Stage& stage : kernel.stages) {
    visit(stage.value, [&](const Expr& node) {
      if (node->kind == ExprNode::Kind::kSelect) add(node->operands[0]);
    });
  }
  return found;
}

std::optional<Dim> index_of(const Expr& expression) {
  if (expression->kind == ExprNode::Kind::kIndex) return expression->index[0];
  if (expression->kind == ExprNode::Kind::kConstant && expression->dtype == DType::kI64)
    return Dim(expression->integer);
  return std::nullopt;
}

// Symbols whose values are not known at the start of a row.
std::set<std::string> inner_symbols(const Kernel& kernel) {
  std::set<std::string> inner;
  for (const loops::Stage& stage : kernel.stages) {
    for (const auto* loops : {&stage.loops, &stage.reduce}) {
      for (const loops::Loop& loop : *loops) inner.insert(loop.variable);
    }
    for (const loops::Binding& binding : stage.bindings) inner.insert(binding.symbol);
  }
  return inner;
}

struct Break {
  Dim at;
  bool holds_before;
};

// a < b, with `variable` in a - b once: variable + rest < 0, or rest - variable < 0.
std::optional<Break> break_of(const ExprNode& comparison, const std::string& variable) {
  const auto a = index_of(comparison.operands[0]), b = index_of(comparison.operands[1]);
  if (!a || !b) return std::nullopt;
  const bool is_less = comparison.binary == Binary::kLess || comparison.binary == Binary::kLessEqual;
  const bool is_greater = comparison.binary == Binary::kGreater || comparison.binary == Binary::kGreaterEqual;
  if (!is_less && !is_greater) return std::nullopt;
  const bool has_equal =
      comparison.binary == Binary::kLessEqual || comparison.binary == Binary::kGreaterEqual;
  const Dim difference = is_less ? *a - *b : *b - *a;
  const auto stride = loops::stride_along(difference, variable);
  const Dim rest = core::substitute(difference, {{variable, Dim(0)}});
  if (stride == Dim(1)) return Break{Dim(has_equal ? 1 : 0) - rest, true};
  if (stride == Dim(-1)) return Break{rest + Dim(has_equal ? 0 : 1), false};
  return std::nullopt;
}

bool is_short(const Kernel& kernel, const LanePlan& plan, const std::vector<RowBreak>& breaks) {
  const auto extent = kernel.parallel.back().extent.constant();
  if (!extent || *extent >= kFewestVectors * plan.lanes) return false;
  return std::ranges::any_of(breaks, [&](const RowBreak& each) {
    const auto at = each.at.constant();
    return !at || *at % plan.lanes != 0;
  });
}

}  // namespace

std::vector<RowBreak> row_breaks(const Kernel& kernel, const LanePlan& plan) {
  int64_t nodes = 0;
  for (const loops::Stage& stage : kernel.stages) visit(stage.value, [&](const Expr&) { ++nodes; });
  if (plan.variable.empty() || plan.lanes == 1 || nodes > kMostNodes) return {};
  const std::set<std::string> inner = inner_symbols(kernel);
  std::vector<RowBreak> breaks;
  for (const ExprNode* comparison : comparisons_of(kernel)) {
    const auto found = break_of(*comparison, plan.variable);
    if (!found || std::ranges::any_of(found->at.symbols(), [&](const auto& s) { return inner.contains(s); }))
      continue;
    auto known = std::ranges::find(breaks, found->at, &RowBreak::at);
    if (known == breaks.end()) known = breaks.insert(breaks.end(), {found->at, {}});
    known->conditions.emplace_back(comparison, found->holds_before);
  }
  const bool ordered =
      std::ranges::all_of(breaks, [](const RowBreak& each) { return each.at.is_constant(); });
  if (breaks.size() > kMostBreaks || (breaks.size() > 1 && !ordered) || is_short(kernel, plan, breaks))
    return {};
  if (ordered) std::ranges::sort(breaks, {}, [](const RowBreak& each) { return *each.at.constant(); });
  return breaks;
}

}  // namespace ingot::core::cpu
