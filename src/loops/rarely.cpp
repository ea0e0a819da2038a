// SPDX-License-Identifier: Apache-2.0
#include "loops/rarely.h"

namespace ingot::core::loops {

Expr rarely(Expr condition, Expr rare, Expr usual) {
  auto node = std::make_shared<ExprNode>(*select(std::move(condition), std::move(rare), std::move(usual)));
  node->integer = 1;
  return node;
}

bool is_rare(const ExprNode& node) { return node.kind == ExprNode::Kind::kSelect && node.integer == 1; }

}  // namespace ingot::core::loops
