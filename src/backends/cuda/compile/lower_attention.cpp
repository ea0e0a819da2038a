// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/lower_attention.h"

#include "backends/cuda/compile/attention.h"
#include "backends/cuda/compile/template_step.h"
#include "ops/attention.h"
#include "ops/ops.h"

namespace ingot::core::cuda {

LoweredStep lower_attention(const Members& members, const Node& attention, const SymbolTable& symbols,
                            const Target& target) {
  const auto is_state = [&](size_t operand) {
    const Node* producer = members.outer.at(attention.operands[operand])->producer;
    return producer != nullptr && producer->op == &ops::state;
  };
  AttentionSite site{.node = attention,
                     .rounds_to_tf32 = rounds_to_tf32(target),
                     .exact_functions = has_exact_functions(target),
                     .keys_are_old = is_state(ops::kKey) && is_state(ops::kValue),
                     .architecture = target.device,
                     .symbols = symbols};
  std::vector<const Value*> computed, others(attention.results.begin(), attention.results.end());
  for (const size_t operand : computable_rows(attention)) {
    if (members.outer.contains(attention.operands[operand])) continue;
    site.computed.push_back(operand);
    computed.push_back(attention.operands[operand]);
  }
  if (const auto prologue = prologue_of(members, computed, symbols)) {
    site.prologue = prologue->kernel;
    std::ranges::copy(read_buffers(*prologue), std::back_inserter(others));
  }
  // Of scores that a mask hides, NaN and infinities are hidden too.
  const bool hides = attention.has_operand(ops::kMask) || attention.attributes<ops::Attention>().causal;
  const auto lower = [&](const AttentionTactic& tactic) {
    LoweredKernel kernel = kernel_of_template(write_attention(site, tactic), attention, target);
    kernel.keeps_special_values = !hides;
    return kernel;
  };
  const std::vector<AttentionTactic> ranked = rank_tactics(site);
  LoweredStep step = lower_template(lower(ranked[0]), members, attention, others);
  for (const AttentionTactic& tactic : tactics_to_time(std::span(ranked), target)) {
    if (tactic.next_start != NextStart::kWithOperands) step.others.push_back(lower(tactic));
  }
  return step;
}

}  // namespace ingot::core::cuda
