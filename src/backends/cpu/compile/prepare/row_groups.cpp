// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/prepare/row_groups.h"

#include <algorithm>

#include "loops/rewrite.h"

namespace ingot::core::cpu {
namespace {

using loops::Expr;
using loops::ExprNode;
using loops::Kernel;
using loops::Loop;
using loops::Stage;

Loop* row_loop(Stage& stage) {
  if (stage.store || stage.scan || !stage.bindings.empty() || stage.loops.size() + stage.reduce.size() != 1)
    return nullptr;
  return stage.loops.empty() ? &stage.reduce[0] : &stage.loops[0];
}

// Whether `stage`, with its loop variable `variable`, reads rows of the group only at its own element.
bool reads_own_element(const Kernel& kernel, const Stage& stage, const std::string& variable,
                       const std::vector<int>& group) {
  bool own = true;
  visit(stage.value, [&](const Expr& node) {
    if (node->kind != ExprNode::Kind::kLocal || std::ranges::find(group, node->stage) == group.end()) return;
    const bool is_row = !kernel.stages[static_cast<size_t>(node->stage)].loops.empty();
    own = own && is_row && node->index[0].is_symbol() && node->index[0].symbol_name() == variable;
  });
  return own;
}

bool joins(Kernel& kernel, const std::vector<int>& group, Stage& stage) {
  const Loop* first = row_loop(kernel.stages[static_cast<size_t>(group[0])]);
  const Loop* loop = row_loop(stage);
  return first != nullptr && loop != nullptr && first->extent == loop->extent &&
         reads_own_element(kernel, stage, loop->variable, group);
}

}  // namespace

std::vector<std::vector<int>> join_row_stages(Kernel& kernel) {
  std::vector<std::vector<int>> groups;
  for (size_t i = 0; i < kernel.stages.size(); ++i) {
    Stage& stage = kernel.stages[i];
    if (groups.empty() || !joins(kernel, groups.back(), stage)) {
      groups.push_back({static_cast<int>(i)});
      continue;
    }
    Loop* loop = row_loop(stage);
    const std::string name = row_loop(kernel.stages[static_cast<size_t>(groups.back()[0])])->variable;
    stage.value = substitute(stage.value, {{loop->variable, Dim::symbol(name)}});
    loop->variable = name;
    groups.back().push_back(static_cast<int>(i));
  }
  return groups;
}

}  // namespace ingot::core::cpu
