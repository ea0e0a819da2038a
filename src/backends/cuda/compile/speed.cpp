// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/speed.h"

#include <algorithm>

#include "backends/cuda/compile/attention.h"
#include "backends/cuda/compile/contraction_rules.h"
#include "backends/cuda/compile/depthwise.h"
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

}  // namespace ingot::core::cuda
