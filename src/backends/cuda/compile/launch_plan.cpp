// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/launch_plan.h"

#include <algorithm>

#include "backends/cuda/compile/neighbours.h"
#include "loops/index_facts.h"
#include "loops/rewrite.h"

namespace ingot::core::cuda {
namespace {

using loops::ExprNode;
using loops::Kernel;
using loops::Loop;
using loops::Stage;

constexpr int kWarp = 32, kThreads = 256;
constexpr int64_t kTypicalExtent = 64;      // of a loop whose extent is not known
constexpr int64_t kWarpRow = 1024;          // longer rows get a whole block,
constexpr int64_t kManyRows = 2048;         // and shorter ones where warps would leave processors idle
constexpr int64_t kFewBlocks = 512;         // at most, for a warp each
constexpr int64_t kRegisterRow = 16;        // elements that one thread may keep
constexpr int64_t kMostShared = 48 * 1024;  // available to a block on every GPU without opting in

int64_t typical(const std::vector<Loop>& loops, const SymbolTable& symbols) {
  int64_t count = 1;
  for (const Loop& loop : loops) {
    const DimRange range = range_of(loop.extent, symbols);
    count *= std::clamp<int64_t>(range.min == range.max ? range.max : std::max(range.min, kTypicalExtent), 1,
                                 1 << 20);
    count = std::min<int64_t>(count, 1 << 30);
  }
  return count;
}

// True if some load of the stage is contiguous along the innermost of `loops`.
bool walks_neighbours(const Kernel& kernel, const Stage& stage, const std::vector<Loop>& loops) {
  if (loops.empty()) return false;
  bool found = false;
  loops::visit(stage.value, [&](const loops::Expr& node) {
    if (node->kind != ExprNode::Kind::kLoad) return;
    const loops::Buffer& buffer = kernel.buffers[static_cast<size_t>(node->buffer)];
    const Dim offset = storage_offset(buffer.type.layout, buffer.type.shape, node->index);
    const auto stride = loops::stride_along(offset, loops.back().variable);
    found |= stride && *stride == Dim(1);
  });
  return found;
}

bool hands_on_a_row(const Stage& stage) { return !stage.store && !stage.loops.empty(); }

bool reads_locals(const Stage& stage) {
  bool found = false;
  const auto look = [&](const loops::Expr& node) { found |= node->kind == ExprNode::Kind::kLocal; };
  loops::visit(stage.value, look);
  for (const loops::Binding& binding : stage.bindings) loops::visit(binding.value, look);
  return found;
}

// Each stage stores what it computes, and none reads another's results.
bool is_flat(const Kernel& kernel) {
  return std::ranges::all_of(kernel.stages, [](const Stage& stage) {
    return stage.store && stage.combine == loops::Combine::kNone && !reads_locals(stage);
  });
}

// A group shares rows and reductions over contiguous elements; a single thread does what is short, or what
// adjacent threads read contiguously.
int group_for(const Kernel& kernel) {
  int64_t longest = 1;
  bool shared = false;
  for (const Stage& stage : kernel.stages) {
    const int64_t own = typical(stage.loops, kernel.symbols), reduced = typical(stage.reduce, kernel.symbols);
    longest = std::max({longest, own, reduced});
    shared |= stage.scan || (hands_on_a_row(stage) && own > kRegisterRow);
    shared |= hands_on_a_row(stage) && !product(extents_of(stage.loops)).is_constant();
    shared |= reduced > kRegisterRow && walks_neighbours(kernel, stage, stage.reduce);
    shared |= own > kRegisterRow && walks_neighbours(kernel, stage, stage.loops);
  }
  if (!shared) return 1;
  if (std::ranges::any_of(kernel.stages, &Stage::scan)) return kWarp;
  const bool few = typical(kernel.parallel, kernel.symbols) < kManyRows && longest >= kThreads;
  return few || longest > kWarpRow ? kThreads : kWarp;
}

Dim row_bytes(const Kernel& kernel) {
  Dim total = 0;
  for (const Stage& stage : kernel.stages) {
    if (!hands_on_a_row(stage)) continue;
    const Dim bytes = product(extents_of(stage.loops)) * Dim(std::max(bit_width(stage.value->dtype) / 8, 1));
    total = total + ceil_divide(bytes, 16) * Dim(16);
  }
  return total;
}

}  // namespace

LaunchPlan plan_launch(const Kernel& kernel, size_t row) {
  LaunchPlan plan{
      .block = kThreads, .group = 1, .flat = is_flat(kernel), .symbols = loops::free_symbols(kernel)};
  plan.points = loops::parallel_extent(kernel);
  if (plan.flat) {
    plan.points = 0;
    for (const Stage& stage : kernel.stages) {
      plan.neighbours.push_back(neighbours_of(kernel, stage));
      plan.points = plan.points + points_of(kernel, stage, plan.neighbours.back());
    }
    return plan;
  }
  plan.group = group_for(kernel);
  const std::vector<RegisterRow> rows = plan.group > 1 ? register_rows(kernel) : std::vector<RegisterRow>();
  if (!rows.empty()) {
    const bool many = typical(kernel.parallel, kernel.symbols) > kFewBlocks;
    plan.row = rows[std::min(row, rows.size() - 1)];
    plan.group = plan.row->group;
    plan.block = many && plan.group == kWarp ? 4 * kWarp : plan.group;
    return plan;
  }
  if (plan.group == kWarp) plan.block = 4 * kWarp;
  if (plan.group == 1) return plan;  // rows are registers
  plan.row_bytes = row_bytes(kernel);
  const int64_t most = range_of(plan.row_bytes, kernel.symbols).max;
  plan.rows_in_shared = most <= kMostShared / (plan.block / plan.group);
  return plan;
}

}  // namespace ingot::core::cuda
