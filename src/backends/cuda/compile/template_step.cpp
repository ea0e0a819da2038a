// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/template_step.h"

#include "backends/cuda/compile/nvrtc.h"
#include "backends/cuda/compile/prelude.h"
#include "backends/cuda/compile/row_statistics.h"
#include "ops/ops.h"

namespace ingot::core::cuda {

bool is_weight(const Value& value) { return value.producer != nullptr && value.producer->op == &ops::weight; }

bool rounds_to_tf32(const Target& target) { return target.numerics == Target::Numerics::kFast; }
bool has_exact_functions(const Target& target) { return target.numerics == Target::Numerics::kStrict; }

Image compile_unit(const std::string& text, const std::string& name, const std::string& device) {
  return {.kernel = name, .target = "cuda:" + device, .code = shared_nvrtc().compile(text, device)};
}

std::string name_with_tactic(std::string_view name, const std::string& tactic) {
  return tactic.empty() ? std::string(name) : fmt::format("{}: {}", name, tactic);
}

LoweredKernel kernel_of_template(const TemplateKernel& kernel, const Node& node, const Target& target) {
  Launch launch{.sizes = {kernel.items, kernel.shared_bytes, kernel.scratch_bytes},
                .constants = {kernel.threads, kernel.threads, kernel.cluster}};
  for (const std::string& symbol : kernel.symbols) launch.symbols.push_back(Dim::symbol(symbol));
  for (const TensorMap& map : kernel.maps) add_tensor_map(map, launch);
  return {.tactic = kernel.tactic,
          .launch = std::move(launch),
          .key = kernel.text,
          .compile = [text = prelude() + kernel.text, name = name_with_tactic(node.op->name, kernel.tactic),
                      device = target.device] { return compile_unit(text, name, device); }};
}

std::vector<const Value*> template_arguments(const Members& members, const Node& node,
                                             std::span<const Value* const> others) {
  std::vector<const Value*> arguments;
  std::ranges::copy_if(given_operands(node), std::back_inserter(arguments), [&](const Value* operand) {
    return operand != nullptr && members.outer.contains(operand);
  });
  arguments.insert(arguments.end(), others.begin(), others.end());
  return arguments;
}

LoweredStep lower_template(LoweredKernel kernel, const Members& members, const Node& node,
                           std::span<const Value* const> others) {
  LoweredStep step;
  step.name = step_name(members.nodes);
  for (const Value* value : template_arguments(members, node, others)) add_argument(step, members, value);
  step.action = std::move(kernel);
  return step;
}

}  // namespace ingot::core::cuda
