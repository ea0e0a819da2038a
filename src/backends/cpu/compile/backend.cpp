// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/backend.h"

#include <algorithm>

#include <fmt/core.h>
#include <llvm/Config/llvm-config.h>

#include "backends/cpu/compile/emit_kernel.h"
#include "backends/cpu/compile/fingerprint.h"
#include "backends/cpu/compile/llvm/generate.h"
#include "backends/cpu/compile/passes.h"
#include "backends/cpu/compile/precision.h"
#include "backends/cpu/compile/speed.h"
#include "backends/cpu/compile/templates/image_rows.h"
#include "backends/cpu/compile/templates/kernel_template.h"
#include "backends/cpu/compile/templates/target.h"
#include "backends/cpu/compile/templates/transposition.h"
#include "backends/steps/fusion_rules.h"
#include "backends/steps/members.h"
#include "ir/elementwise.h"
#include "ir/in_place.h"
#include "loops/overwrite.h"
#include "loops/zero_padding.h"
#include "support/error.h"

namespace ingot::core::cpu {
namespace {

// `generate` makes exceptions of LLVM's fatal errors.
LoweredKernel lowered(const KernelLaunch& launch, std::string key, std::function<Image()> compile) {
  return {.tactic = {},
          .launch = to_launch(launch),
          .key = std::move(key),
          .compile = [compile = std::move(compile)] { return generate(compile); }};
}

LoweredKernel lowered(TemplateKernel kernel) {
  LoweredKernel step = lowered(kernel.launch, std::move(kernel.key), std::move(kernel.compile));
  step.tactic = std::move(kernel.tactic);
  step.keeps_special_values = kernel.keeps_special_values;
  return step;
}

// What is worth timing besides the default.
std::vector<PanelTactic> tactics_to_time(const KernelTemplate& kernel_template, const Node& contraction,
                                         const Target& target) {
  constexpr size_t kFew = 4, kMany = 16;
  if (!target.times_tactics() || kernel_template.tactics == nullptr) return {};
  std::vector<PanelTactic> tactics = kernel_template.tactics(contraction, target);
  tactics.resize(std::min(tactics.size(), 1 + (target.level == 4 ? kFew : kMany)));
  tactics.erase(tactics.begin());
  return tactics;
}

LoweredStep lower_contraction(const Members& members, const Node& contraction,
                              const KernelTemplate& kernel_template, const SymbolTable& symbols,
                              const Target& target) {
  const RegionKernel epilogue = epilogue_of(members, contraction);
  LoweredStep step;
  step.name = step_name(members.nodes);
  const auto plan = [&](const PanelTactic& tactic) {
    return lowered(kernel_template.plan(contraction, epilogue.kernel, symbols, target, tactic));
  };
  step.action = plan({});
  for (const PanelTactic& tactic : tactics_to_time(kernel_template, contraction, target))
    step.others.push_back(plan(tactic));
  for (const Value* operand : contraction.operands) {
    if (operand != nullptr) add_argument(step, members, operand);
  }
  for (size_t i = 1; i < epilogue.buffers.size(); ++i) add_argument(step, members, epilogue.buffers[i]);
  return step;
}

LoweredStep lower_transposition(const Node& node, const SymbolTable& symbols, const Target& target) {
  LoweredStep step;
  step.name = node.op->name;
  step.arguments = {node.operands[0], node.results[0]};
  step.writes = {false, true};
  step.action = lowered(plan_transposition(node, symbols, target));
  return step;
}

// A separate step that computes `kernel`, whose symbols have their ranges.
LoweredStep kernel_step(std::string name, const loops::Kernel& kernel, const Target& target) {
  LoweredStep step;
  step.name = std::move(name);
  PreparedKernel prepared = prepare(kernel, features_of(target));
  const KernelLaunch launch = launch_of(prepared);
  step.action =
      lowered(launch, to_string(kernel), [prepared = std::move(prepared)] { return emit_kernel(prepared); });
  return step;
}

LoweredStep lower_loops(const Members& members, const SymbolTable& symbols, const Target& target) {
  RegionKernel region = compose_members(members, symbols);
  std::vector<uint32_t> may_overwrite = loops::overwritable_buffers(region.kernel);
  LoweredStep step = kernel_step(step_name(members.nodes), region.kernel, target);
  for (const Value* value : region.buffers) add_argument(step, members, value);
  step.may_overwrite = std::move(may_overwrite);
  return step;
}

// Zeroes the padding of `node`'s results: products read it together with the elements. In-place updates keep
// the padding of their operand.
void zero_paddings(const Node& node, const SymbolTable& symbols, const Target& target,
                   std::vector<LoweredStep>& steps) {
  for (Value* result : node.results) {
    if (in_place_update(*result)) continue;
    std::optional<loops::Kernel> kernel = loops::zero_padding(result->type);
    if (!kernel) continue;
    add_ranges(*kernel, symbols);
    LoweredStep& step = steps.emplace_back(kernel_step("zero_padding", *kernel, target));
    step.arguments = {result};
    step.writes = {true};
  }
}

ReadyRule ready_for(const Target& target) {
  return [&target](const Node& contraction) { return find_ready_template(contraction, target) != nullptr; };
}

class CpuBackend final : public Backend {
 public:
  std::string_view name() const override { return "cpu"; }
  std::string_view generator() const override {
    static const std::string name = fmt::format("LLVM {}, sources {}", LLVM_VERSION_STRING, kFingerprint);
    return name;
  }

  std::string device(std::string_view words) const override {
    return to_string(words.empty() ? host_cpu_features() : parse_cpu_features(words));
  }

  Support supports(const Node& node, const SymbolValues& sizes, const Target& target) const override {
    if (node.op->lower == nullptr && node.op->routine.empty() && !node.op->traits.has(Trait::kFused))
      return {Support::Answer::kNo, fmt::format("there is no kernel for {}", node.op->name)};
    return judge_speed(node, sizes, target);
  }
  double predicted_ns(const Node& node, const SymbolValues& sizes, const Target&) const override {
    return cpu::predicted_ns(node, sizes);
  }

  std::vector<Pass> passes(const Target& target) const override { return own_passes(target); }

  PrecisionChoice precision(const PrecisionSite& site, const Target& target) const override {
    return choose_precision(site, target);
  }
  int64_t quantized_multiple(const Node& contraction, const Target& target) const override {
    for (const int64_t multiple : {1, 4}) {
      if (has_integer_template(contraction, target, multiple)) return multiple;
    }
    return 0;
  }

  LayoutRequest layouts(const Node& node, const Target& target) const override {
    if (const KernelTemplate* kernel_template = find_template(*node.op)) {
      if (kernel_template->supports(node, target).yes) return kernel_template->layouts(node, target);
    }
    if (prefers_channels_last(node, target)) {
      const Layout layout = Layout::permutation(channels_last(node.operand_type(0).rank()));
      return {{layout}, {layout}};
    }
    return {};
  }

  FusionAnswer may_fuse_consumer(const Node& root, const Node& consumer,
                                 const Target& target) const override {
    return may_take_consumer(root, consumer, ready_for(target));
  }
  FusionAnswer may_fuse_producer(const Node& root, const Node& producer,
                                 const Target& target) const override {
    if (producer.op == &ops::relayout && prefers_channels_last(root, target))
      return {false, "it brings channels together, which are read more than once"};
    return may_take_producer(root, producer, ready_for(target));
  }
  bool may_keep_producer(const Node& root, const Node& node, const Target& target) const override {
    return computes_elements(node) && find_ready_template(root, target) != nullptr;
  }

  std::vector<LoweredStep> lower(const Node& node, const SymbolTable& symbols,
                                 const Target& target) const override {
    if (!node.op->routine.empty()) return {lower_routine(node)};
    const Members members = members_of(node);
    const Node* contraction = find_contraction(members);
    const KernelTemplate* kernel_template =
        contraction != nullptr ? find_ready_template(*contraction, target) : nullptr;
    std::vector<LoweredStep> steps;
    zero_paddings(node, symbols, target, steps);
    steps.push_back(kernel_template != nullptr
                        ? lower_contraction(members, *contraction, *kernel_template, symbols, target)
                    : supports_transposition(node).yes ? lower_transposition(node, symbols, target)
                                                       : lower_loops(members, symbols, target));
    return steps;
  }
};

}  // namespace

const Backend& backend() {
  static const CpuBackend instance;
  return instance;
}

}  // namespace ingot::core::cpu
