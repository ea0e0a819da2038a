// SPDX-License-Identifier: Apache-2.0
// Schedules that are designed by hand: for the contractions, where the order of loops decides the speed. All
// else is Loop IR.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "backends/cpu/kernel_abi.h"

namespace ingot::core::cpu {

// What a schedule makes of a node: a LoweredStep without the graph's values.
// The kernel's buffers are the node's operands (those that are present), then the epilogue's without its
// first.
struct ScheduledKernel {
  KernelLaunch launch;
  std::string key;  // canonical text of everything that decides the code
  std::function<Image()> compile;
};

// Whether a schedule can compute a node, and why not.
struct Fit {
  bool yes = true;
  std::string reason;
};

// One way to compute an op.
//
// The epilogue is a kernel over the contraction's result index: its parallel loops are the dims of the
// result, in order, and its stages are maps without loops of their own; stages without a store hand values to
// later ones. Buffer 0 is the contraction's result, loaded at exactly that index; the others are operands
// that joined, and all results. See epilogue.h.
struct Schedule {
  const Op* op;
  Fit (*supports)(const Node& node, const Target& target);
  LayoutRequest (*layouts)(const Node& node, const Target& target);
  // `node` has the layouts that `layouts` asked for.
  ScheduledKernel (*plan)(const Node& node, const loops::Kernel& epilogue, const SymbolTable& symbols,
                          const Target& target);
};

const Schedule* find_schedule(const Op& op);  // null: the op has none

// The schedule that can compute `node` as it stands: null if it has none, if none supports it, or if its
// operands and results do not have the layouts that the schedule asks for.
const Schedule* find_ready_schedule(const Node& node, const Target& target);

}  // namespace ingot::core::cpu
