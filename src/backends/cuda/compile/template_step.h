// SPDX-License-Identifier: Apache-2.0
// Steps whose kernels are templates.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "backends/cuda/compile/next_start.h"
#include "backends/cuda/compile/template_text.h"
#include "backends/steps/members.h"

namespace ingot::core::cuda {

bool is_weight(const Value& value);
bool rounds_to_tf32(const Target& target);
bool has_exact_functions(const Target& target);

Image compile_unit(const std::string& text, const std::string& name, const std::string& device);
// As inspect and profiles show it.
std::string name_with_tactic(std::string_view name, const std::string& tactic);

LoweredKernel kernel_of_template(const TemplateKernel& kernel, const Node& node, const Target& target);

// The node's operands that are given to kernels and not computed by them, then `others`.
std::vector<const Value*> template_arguments(const Members& members, const Node& node,
                                             std::span<const Value* const> others);

// The step of `kernel` for `node`.
LoweredStep lower_template(LoweredKernel kernel, const Members& members, const Node& node,
                           std::span<const Value* const> others);

// What is worth timing of `ranked`, the predicted fastest first: the best tiles, and the best of these with
// each start of the next kernel.
template <typename Tactic>
std::vector<Tactic> tactics_to_time(std::span<const Tactic> ranked, const Target& target) {
  if (!target.times_tactics()) return {};
  const size_t tiles = std::min<size_t>(ranked.size(), target.level == 4 ? 4 : 16);
  const size_t with_starts = std::min<size_t>(tiles, target.level == 4 ? 1 : 8);
  std::vector<Tactic> tactics(ranked.begin() + 1, ranked.begin() + static_cast<ptrdiff_t>(tiles));
  for (const Tactic& tactic : ranked.first(with_starts)) {
    for (const NextStart start : {NextStart::kAtOnce, NextStart::kWithOperands, NextStart::kAtEnd}) {
      if (start == tactic.next_start) continue;
      tactics.push_back(tactic);
      tactics.back().next_start = start;
    }
  }
  return tactics;
}

}  // namespace ingot::core::cuda
