// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/emit_kernel.h"

#include "backends/cpu/compile/llvm/loops_emitter.h"
#include "backends/cpu/compile/prepare/lane_plan.h"
#include "loops/order_for_storage.h"
#include "loops/rewrite.h"

namespace ingot::core::cpu {
namespace {

constexpr int64_t kTypicalExtent = 64;  // of a loop of unknown extent

// Nodes evaluated for one point: about four per nanosecond, for vectors eight times as many.
int64_t item_cost(const loops::Kernel& kernel) {
  int64_t nodes = 0;
  for (const loops::Stage& stage : kernel.stages) {
    int64_t repeats = 1, own = 1;
    for (const auto* loops : {&stage.loops, &stage.reduce}) {
      for (const loops::Loop& loop : *loops) repeats *= loop.extent.constant().value_or(kTypicalExtent);
    }
    visit(stage.value, [&](const loops::Expr&) { ++own; });
    nodes += repeats * own;
  }
  return nodes / 32;
}

}  // namespace

KernelLaunch plan_launch(const loops::Kernel& written, CpuFeatures features) {
  const loops::Kernel kernel = order_for_storage(written);
  return {.symbols = free_symbols(kernel),
          .work_items = parallel_extent(kernel),
          .scratch_bytes = scratch_bytes(kernel, features),
          .grain = plan_lanes(kernel, features).grain,
          .item_cost = item_cost(kernel)};
}

Image compile_kernel(const loops::Kernel& kernel, CpuFeatures features) {
  Code code(features);
  return make_image(code, emit_loops_function(code, order_for_storage(kernel), kernel.name));
}

}  // namespace ingot::core::cpu
