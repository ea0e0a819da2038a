// SPDX-License-Identifier: Apache-2.0
#include "loops/count_operations.h"

#include <set>

namespace ingot::core::loops {
namespace {

int64_t operations_of(const ExprNode& node) {
  switch (node.kind) {
    case ExprNode::Kind::kUnary:
    case ExprNode::Kind::kFunction:
    case ExprNode::Kind::kBinary:
      return node.dtype == DType::kBool ? 0 : 1;
    case ExprNode::Kind::kFma:
      return 2;
    default:
      return 0;
  }
}

// Sums `weight` over the nodes of an expression; shared subexpressions are computed once.
template <typename Weight>
int64_t sum(const Expr& expr, const Weight& weight, std::set<const ExprNode*>& seen) {
  if (expr == nullptr || !seen.insert(expr.get()).second) return 0;
  int64_t total = weight(*expr);
  for (const Expr& operand : expr->operands) total += sum(operand, weight, seen);
  return total;
}

Dim points(const std::vector<Loop>& loops) {
  Dim total = 1;
  for (const Loop& loop : loops) total = total * loop.extent;
  return total;
}

template <typename Weight>
Dim sum_over_points(const Kernel& kernel, const Weight& weight, int64_t per_combination) {
  Dim total = 0;
  for (const Stage& stage : kernel.stages) {
    std::set<const ExprNode*> seen;
    int64_t per_point = sum(stage.value, weight, seen);
    for (const Binding& binding : stage.bindings) per_point += sum(binding.value, weight, seen);
    if (stage.combine != Combine::kNone) per_point += per_combination;
    total = total + points(stage.loops) * points(stage.reduce) * Dim(per_point);
  }
  return total * points(kernel.parallel);
}

}  // namespace

Dim count_operations(const Kernel& kernel) { return sum_over_points(kernel, operations_of, 1); }

Dim count_loads(const Kernel& kernel, int buffer) {
  const auto is_load = [buffer](const ExprNode& node) -> int64_t {
    return node.kind == ExprNode::Kind::kLoad && node.buffer == buffer ? 1 : 0;
  };
  return sum_over_points(kernel, is_load, 0);
}

Dim count_stores(const Kernel& kernel, int buffer) {
  Dim total = 0;
  for (const Stage& stage : kernel.stages) {
    if (stage.store && stage.store->buffer == buffer) total = total + points(stage.loops);
  }
  return total * points(kernel.parallel);
}

}  // namespace ingot::core::loops
