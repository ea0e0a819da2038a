// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/speed.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "backends/cuda/compile/attention.h"
#include "backends/cuda/compile/collectives.h"
#include "backends/cuda/compile/contraction_rules.h"
#include "backends/cuda/compile/depthwise.h"
#include "backends/cuda/compile/gpu_limits.h"
#include "backends/cuda/compile/routine_kernels.h"
#include "backends/cuda/compile/tensor_core_types.h"
#include "backends/steps/loop_steps.h"
#include "ops/convolution.h"
#include "ops/ops.h"

namespace ingot::core::cuda {
namespace {

constexpr int kTemplateLevel = 3;
// For an H200, per nanosecond: steps of plain loops, and multiply-adds of a library in f32 and f64.
constexpr double kOwnSteps = 220, kPeerSteps = 15000;
constexpr double kPeerCall = 5000;  // ns
constexpr double kNotable = 1.25;   // predictions are only this accurate

// Each thread has one result, and reads few weights.
bool is_convolution_of_channels(const Node& node) {
  return node.op == &ops::convolution &&
         node.operand_type(0).shape[1] == Dim(node.attributes<ops::Convolution>().groups);
}

// Its channels are padded, and its layouts assigned, behind this judgement.
bool will_have_tensor_cores(const Node& node) {
  return node.op == &ops::convolution && node.operand_type(0).rank() == 4 &&
         has_tensor_cores(node.operand_type(0).dtype) && node.attributes<ops::Convolution>().groups == 1;
}

bool has_template(const Node& node) {
  return is_tensor_core_contraction(node) || will_have_tensor_cores(node) || is_tensor_core_attention(node) ||
         is_depthwise(node) || is_convolution_of_channels(node);
}

struct Times {
  double own, peer;  // ns
  std::string_view reason;
};

// Measured on an H200, as are the others. One block numbers the true elements.
Times time_of_nonzero(double elements) {
  return {kPeerCall + 0.4 * elements, 80e3 + 0.002 * elements, "one block numbers all elements of the mask"};
}

// A warp compares 256 indices with its row's in 700 ns, and copies the row; without rows, threads compare.
Times time_of_scatter(double elements, double rows, double along, bool has_rows) {
  constexpr double kWarps = 32 * kMultiprocessors, kRowPart = 128, kBytes = 8, kBandwidth = 3300;
  const double peer = 20e3 + kBytes * elements / kBandwidth;
  constexpr std::string_view kReason = "each element of the result is compared with each index";
  if (!has_rows) return {kPeerCall + 3.2e-3 * elements * along, peer, kReason};
  const double parts = rows * std::ceil(elements / std::max(rows, 1.0) / kRowPart);
  const double compared = 700 * std::ceil(along / 256) * std::ceil(parts / kWarps);
  return {kPeerCall + compared + kBytes * elements / kBandwidth, peer, kReason};
}

// A block sorts a line, in runs of 4,096; selection looks at each element once.
Times time_of_sort(double elements, double line, bool selects) {
  constexpr double kLong = 4096;
  const double waves = std::ceil(elements / line / (2 * kMultiprocessors));
  const double own = waves * line * (selects ? 1.2 : line > kLong ? 17 : 10);
  return {kPeerCall + own, (line > kLong ? 100e3 : 40e3) + 0.05 * elements, "one block sorts a whole line"};
}

// The device is waited for, values are copied at the speed of the bus, and the host looks at each.
double time_on_host(const Node& node, const SymbolValues& sizes) {
  constexpr double kWait = 60e3, kElement = 1.5;
  double elements = 0;
  for (const auto* values : {&node.operands, &node.results}) {
    for (const Value* value : *values)
      elements += value == nullptr ? 0 : static_cast<double>(evaluate(product(value->type.shape), sizes));
  }
  return kWait + kElement * elements;
}

Times time_of_routine(const Node& node, const SymbolValues& sizes) {
  const auto value = [&](const Dim& dim) { return static_cast<double>(evaluate(dim, sizes)); };
  const double elements = value(product(node.operand_type(0).shape));
  if (node.op == &ops::nonzero) return time_of_nonzero(elements);
  const auto axis = scatter_axis(node);
  if (!axis) return time_of_sort(elements, std::max(value(sorted_extent(node)), 1.0), selects(node));
  return time_of_scatter(elements, value(node.operand_type(0).shape[*axis]),
                         value(node.operand_type(1).shape[*axis]), has_one_index_a_row(node));
}

}  // namespace

Support judge_speed(const Node& node, const SymbolValues& sizes, const Target& target) {
  if (target.level < kTemplateLevel || !node.op->traits.has(Trait::kContraction) || has_template(node))
    return {};
  const double steps = loop_steps(node, sizes);
  const double own = steps / kOwnSteps, peer = steps / kPeerSteps + kPeerCall;
  if (own < kNotable * peer) return {};
  return {Support::Answer::kSlow, "no kernel template multiplies operands of these dtypes and sizes", own,
          peer};
}

Support judge_routine(const Node& node, const SymbolValues& sizes) {
  if (is_collective_of_nccl(node)) return {};
  if (!has_routine_kernel(node)) {
    if (node.op->traits.has(Trait::kBindsSize)) return {.runs_on_host = true};  // torch's host waits, too
    return {Support::Answer::kSlow,
            fmt::format("{} of {} runs on the host: its operands and results are copied", node.op->name,
                        name(node.operand_type(0).dtype)),
            time_on_host(node, sizes), 4 * kPeerCall, true};
  }
  const Times times = time_of_routine(node, sizes);
  if (times.own < kNotable * times.peer) return {};
  return {Support::Answer::kSlow, std::string(times.reason), times.own, times.peer};
}

double predicted_ns(const Node& node, const SymbolValues& sizes) {
  constexpr double kCall = 1000, kProducts = 50000, kBytes = 2000;  // ns, and per ns
  const bool multiplies = node.op->traits.has(Trait::kContraction);
  const double computing = loop_steps(node, sizes) / (multiplies ? kProducts : kOwnSteps);
  return kCall + computing + moved_bytes(node, sizes) / kBytes;
}

}  // namespace ingot::core::cuda
