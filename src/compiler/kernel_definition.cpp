// SPDX-License-Identifier: Apache-2.0
#include "compiler/kernel_definition.h"

#include <algorithm>

#include "loops/rewrite.h"
#include "ops/ops.h"
#include "ops/region.h"
#include "ops/row_moments.h"
#include "ops/scaled_linear.h"

namespace ingot::core {

using loops::Kernel;

namespace {
constexpr double kNanosecondsPerNode = 20;  // of the interpreter

// An image and its Winograd transform belong together: the kernel reads either, depending on the tile.
// Infinite scales multiply sums of a block, or their terms.
bool is_for_finite(const Node& node) {
  return node.op == &ops::winograd_convolution || node.op == &ops::scaled_linear;
}
}  // namespace

std::optional<Definition> define(const Node& node) {
  std::vector<const Node*> nodes{&node};
  std::vector<const Value*> outputs(node.results.begin(), node.results.end());
  std::map<const Value*, const Value*> outer;
  if (node.op->traits.has(Trait::kFused)) {
    const Graph& region = *node.graphs[0];
    nodes.clear();
    for (const auto& member : region.nodes()) nodes.push_back(member.get());
    outputs.assign(region.outputs.begin(), region.outputs.end());
    for (size_t i = 0; i < region.inputs().size(); ++i) outer.emplace(region.inputs()[i], node.operands[i]);
    for (size_t i = 0; i < outputs.size(); ++i) outer.emplace(outputs[i], node.results[i]);
  }
  const auto outside = [&](const Value* value) { return outer.contains(value) ? outer.at(value) : value; };
  const auto has_lowering = [](const Node* member) { return member->op->lower != nullptr; };
  if (!std::ranges::all_of(nodes, has_lowering)) return std::nullopt;
  // A product with moments or statistics of rows as further results is no one kernel of Loop IR.
  const auto is_of_rows = [](const Value* output) {
    return output->producer->op == &ops::row_moments || ops::is_row_statistic(*output->producer);
  };
  if (nodes.size() > 1 && std::ranges::any_of(outputs, is_of_rows)) return std::nullopt;
  // Nor are two contractions, or one with several results.
  const auto is_contraction = [](const Node* member) { return member->op->traits.has(Trait::kContraction); };
  const auto contractions = std::ranges::count_if(nodes, is_contraction);
  if (contractions > 1 || (contractions == 1 && outputs.size() > 1)) return std::nullopt;
  RegionKernel region = compose_region(nodes, outputs);
  Definition definition{std::move(region.kernel)};
  for (const Value* value : region.buffers) definition.buffers.push_back(outside(value));
  for (const Node* member : nodes) {
    definition.is_for_finite = definition.is_for_finite || is_for_finite(*member);
    if (!member->op->traits.has(Trait::kInPlace)) continue;
    definition.replaces.emplace(outside(member->results[0]), outside(member->operands[0]));
  }
  return definition;
}

bool suits_special_values(const Definition& definition) {
  bool suits = !definition.is_for_finite;
  const auto see = [&](const loops::Expr& node) {
    if (node->kind != loops::ExprNode::Kind::kBinary) return;
    suits = suits && node->binary != loops::Binary::kShiftLeft && node->binary != loops::Binary::kShiftRight;
  };
  for (const loops::Stage& stage : definition.kernel.stages) {
    loops::visit(stage.value, see);
    suits = suits && stage.combine != loops::Combine::kMultiply;
  }
  return suits;
}

bool reduces(const Kernel& kernel) {
  return std::ranges::any_of(kernel.stages, [](const loops::Stage& stage) {
    return stage.scan || !stage.reduce.empty() || !stage.loops.empty();
  });
}

double point_cost(const Kernel& kernel, const SymbolValues& sizes) {
  double cost = 0;
  for (const loops::Stage& stage : kernel.stages) {
    double repeats = 1, nodes = 1;
    for (const auto* loops : {&stage.loops, &stage.reduce}) {
      for (const loops::Loop& loop : *loops)
        repeats *= static_cast<double>(std::max<int64_t>(evaluate(loop.extent, sizes), 1));
    }
    loops::visit(stage.value, [&](const loops::Expr&) { ++nodes; });
    cost += repeats * nodes * kNanosecondsPerNode;
  }
  return cost;
}

}  // namespace ingot::core
