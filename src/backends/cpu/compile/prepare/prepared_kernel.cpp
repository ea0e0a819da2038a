// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/prepare/prepared_kernel.h"

#include "backends/cpu/compile/prepare/row_groups.h"
#include "loops/move_bits.h"
#include "loops/order_for_storage.h"
#include "loops/rewrite.h"

namespace ingot::core::cpu {
namespace {

using loops::Kernel;
using loops::Loop;
using loops::Stage;

constexpr int64_t kTypicalExtent = 64;    // of a loop of unknown extent
constexpr int64_t kStackRows = 16 << 10;  // bytes of local rows that may be on the stack

// Nodes evaluated for one point: about four per nanosecond, for vectors eight times as many.
int64_t item_cost(const Kernel& kernel) {
  int64_t nodes = 0;
  for (const Stage& stage : kernel.stages) {
    int64_t repeats = 1, own = 1;
    for (const auto* loops : {&stage.loops, &stage.reduce}) {
      for (const Loop& loop : *loops) repeats *= loop.extent.constant().value_or(kTypicalExtent);
    }
    visit(stage.value, [&](const loops::Expr&) { ++own; });
    nodes += repeats * own;
  }
  return nodes / 32;
}

RowPlan plan_rows(const Kernel& kernel, const LanePlan& lanes) {
  RowPlan rows;
  for (const Stage& stage : kernel.stages) {
    rows.offsets.push_back(rows.bytes);
    if (stage.store || stage.loops.empty()) continue;
    Dim elements = lanes.variable.empty() ? 1 : lanes.lanes;
    for (const Loop& loop : stage.loops) elements = elements * loop.extent;
    rows.bytes = rows.bytes + ceil_divide(elements * Dim(bit_width(stage.value->dtype) / 8), 64) * Dim(64);
  }
  rows.on_stack = rows.bytes.is_constant() && *rows.bytes.constant() <= kStackRows;
  return rows;
}

std::vector<std::vector<int>> each_alone(const Kernel& kernel) {
  std::vector<std::vector<int>> groups;
  for (size_t i = 0; i < kernel.stages.size(); ++i) groups.push_back({static_cast<int>(i)});
  return groups;
}

}  // namespace

PreparedKernel prepare_in_order(Kernel kernel, CpuFeatures features) {
  loops::verify(kernel);
  PreparedKernel prepared{.features = features, .kernel = loops::move_bits(std::move(kernel))};
  prepared.lanes = plan_lanes(prepared.kernel, features);
  const bool along_rows = prepared.lanes.variable.empty() && prepared.lanes.lanes > 1;
  prepared.groups = along_rows ? join_row_stages(prepared.kernel) : each_alone(prepared.kernel);
  prepared.rows = plan_rows(prepared.kernel, prepared.lanes);
  return prepared;
}

PreparedKernel prepare(const Kernel& kernel, CpuFeatures features) {
  return prepare_in_order(order_for_storage(kernel), features);
}

KernelLaunch launch_of(const PreparedKernel& prepared) {
  return {.symbols = free_symbols(prepared.kernel),
          .work_items = parallel_extent(prepared.kernel),
          .scratch_bytes = prepared.rows.on_stack ? Dim(0) : prepared.rows.bytes,
          .grain = prepared.lanes.grain,
          .item_cost = item_cost(prepared.kernel)};
}

}  // namespace ingot::core::cpu
