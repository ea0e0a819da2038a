// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/backend.h"

#include <algorithm>

#include <fmt/core.h>
#include <llvm/Config/llvm-config.h>

#include "backends/cpu/compile/emit_kernel.h"
#include "backends/cpu/compile/fusion_rules.h"
#include "backends/cpu/compile/llvm/generate.h"
#include "backends/cpu/compile/schedule.h"
#include "backends/cpu/compile/schedules/image_rows.h"
#include "backends/cpu/compile/schedules/transposition.h"
#include "backends/cpu/compile/schedules/winograd.h"
#include "backends/cpu/compile/speed.h"
#include "loops/overwrite.h"
#include "loops/zero_padding.h"
#include "ops/region.h"
#include "ops/routine_attributes.h"
#include "support/error.h"

namespace ingot::core::cpu {
namespace {

std::string step_name(std::span<const Node* const> nodes) {
  std::string names;
  for (const Node* node : nodes) names += (names.empty() ? "" : ", ") + std::string(node->op->name);
  return nodes.size() == 1 ? names : "fused[" + names + "]";
}

// The nodes that a step computes: the node itself, or those of its region.
struct Members {
  std::vector<const Node*> nodes;
  std::vector<const Value*> outputs;     // in the members' graph
  std::map<const Value*, Value*> outer;  // members' inputs and outputs -> values of the whole graph
};

Members members_of(const Node& node) {
  Members members;
  if (!node.op->traits.has(Trait::kFused)) {
    members.nodes = {&node};
    for (Value* result : node.results) members.outputs.push_back(result);
    for (Value* value : node.operands) members.outer.emplace(value, value);
    for (Value* value : node.results) members.outer.emplace(value, value);
    return members;
  }
  const Graph& region = *node.graphs[0];
  for (const auto& member : region.nodes()) members.nodes.push_back(member.get());
  for (size_t i = 0; i < region.inputs().size(); ++i)
    members.outer.emplace(region.inputs()[i], node.operands[i]);
  for (size_t i = 0; i < region.outputs.size(); ++i) {
    members.outputs.push_back(region.outputs[i]);
    members.outer.emplace(region.outputs[i], node.results[i]);
  }
  return members;
}

void add_argument(LoweredStep& step, const Members& members, const Value* value) {
  const bool writes = std::ranges::find(members.outputs, value) != members.outputs.end();
  step.arguments.push_back(members.outer.at(value));
  step.writes.push_back(writes);
}

LoweredStep lower_routine(const Node& node) {
  LoweredStep step;
  step.name = node.op->name;
  step.routine = node.op->routine;
  step.attributes = routine_attributes(node);
  for (Value* operand : node.operands) {
    if (operand == nullptr) continue;
    step.arguments.push_back(operand);
    step.writes.push_back(false);
  }
  for (Value* result : node.results) {
    step.arguments.push_back(result);
    step.writes.push_back(true);
  }
  return step;
}

// The part of a region behind its contraction, as a kernel whose buffer 0 is the contraction's result.
RegionKernel epilogue_of(const Members& members, const Node& contraction) {
  std::vector<const Node*> rest;
  for (const Node* node : members.nodes) {
    if (node != &contraction) rest.push_back(node);
  }
  const Value* result = contraction.results[0];
  if (rest.empty()) {
    RegionKernel plain{plain_epilogue(result->type), {result, result}};
    return plain;
  }
  RegionKernel epilogue = compose_region(rest, members.outputs);
  const auto position = std::ranges::find(epilogue.buffers, result) - epilogue.buffers.begin();
  return move_buffer_first(std::move(epilogue), static_cast<int>(position));
}

void take_kernel(LoweredStep& step, ScheduledKernel kernel) {
  step.symbols = std::move(kernel.symbols);
  step.work_items = kernel.work_items;
  step.grain = kernel.grain;
  step.item_cost = kernel.item_cost;
  step.scratch_bytes = kernel.scratch_bytes;
  step.kernel_key = std::move(kernel.key);
  step.compile = std::move(kernel.compile);
}

LoweredStep lower_contraction(const Members& members, const Node& contraction, const Schedule& schedule,
                              const SymbolTable& symbols, const Target& target) {
  const RegionKernel epilogue = epilogue_of(members, contraction);
  ScheduledKernel kernel = schedule.plan(contraction, epilogue.kernel, symbols, target);
  LoweredStep step;
  step.name = step_name(members.nodes);
  for (const Value* operand : contraction.operands) {
    if (operand != nullptr) add_argument(step, members, operand);
  }
  for (size_t i = 1; i < epilogue.buffers.size(); ++i) add_argument(step, members, epilogue.buffers[i]);
  take_kernel(step, std::move(kernel));
  return step;
}

LoweredStep lower_transposition(const Node& node, const SymbolTable& symbols, const Target& target) {
  LoweredStep step;
  step.name = node.op->name;
  step.arguments = {node.operands[0], node.results[0]};
  step.writes = {false, true};
  take_kernel(step, plan_transposition(node, symbols, target));
  return step;
}

// A step of its own that computes `kernel`, whose symbols have their ranges.
LoweredStep kernel_step(std::string name, loops::Kernel kernel, const Target& target) {
  const KernelCallPlan call = plan_call(kernel, target.features);
  LoweredStep step;
  step.name = std::move(name);
  step.symbols = call.symbols;
  step.work_items = call.work_items;
  step.grain = call.grain;
  step.item_cost = call.item_cost;
  step.scratch_bytes = call.scratch_bytes;
  step.kernel_key = to_string(kernel) + to_string(target.features);
  step.compile = [kernel = std::move(kernel), features = target.features] {
    return compile_kernel(kernel, features);
  };
  return step;
}

LoweredStep guarded(LoweredStep step) {
  step.compile = [make = std::move(step.compile)] { return generate(make); };
  return step;
}

void add_ranges(loops::Kernel& kernel, const SymbolTable& symbols) {
  for (const std::string& name : loops::free_symbols(kernel)) {
    if (const auto info = symbols.find(name); info != symbols.end()) kernel.symbols.insert(*info);
  }
}

LoweredStep lower_loops(const Members& members, const SymbolTable& symbols, const Target& target) {
  RegionKernel region = compose_region(members.nodes, members.outputs);
  add_ranges(region.kernel, symbols);
  std::vector<uint32_t> may_overwrite = loops::overwritable_buffers(region.kernel);
  LoweredStep step = kernel_step(step_name(members.nodes), std::move(region.kernel), target);
  for (const Value* value : region.buffers) add_argument(step, members, value);
  step.may_overwrite = std::move(may_overwrite);
  return step;
}

// Zeros for the padding of what `node` stores: products read it with the elements. Updates in place keep the
// padding of their operand.
void zero_paddings(const Node& node, const SymbolTable& symbols, const Target& target,
                   std::vector<LoweredStep>& steps) {
  for (Value* result : node.results) {
    if (node.op->traits.has(Trait::kInPlace) && result->index == 0) continue;
    std::optional<loops::Kernel> kernel = loops::zero_padding(result->type);
    if (!kernel) continue;
    add_ranges(*kernel, symbols);
    LoweredStep& step = steps.emplace_back(kernel_step("zero_padding", *std::move(kernel), target));
    step.arguments = {result};
    step.writes = {true};
  }
}

const Node* find_contraction(const Members& members) {
  const auto found = std::ranges::find_if(
      members.nodes, [](const Node* node) { return node->op->traits.has(Trait::kContraction); });
  return found == members.nodes.end() ? nullptr : *found;
}

class CpuBackend final : public Backend {
 public:
  std::string_view name() const override { return "cpu"; }
  std::string_view generator() const override { return "LLVM " LLVM_VERSION_STRING; }

  Support supports(const Node& node, const SymbolValues& sizes, const Target& target) const override {
    if (node.op->lower == nullptr && node.op->routine.empty() && !node.op->traits.has(Trait::kFused))
      return {Support::Answer::kNo, fmt::format("there is no kernel for {}", node.op->name)};
    return judge_speed(node, sizes, target);
  }

  // bf16 and f16 wait for schedules of their own: f32's are many times faster than plain loops, and round
  // less.
  DType compute_dtype(const Node& contraction, const Target& target) const override {
    const DType own = contraction.results[0]->type.dtype;
    const bool is_half = own == DType::kBF16 || own == DType::kF16;
    const Schedule* schedule = find_schedule(*contraction.op);
    if (!is_half || (schedule != nullptr && schedule->supports(contraction, target).yes)) return own;
    return DType::kF32;
  }

  bool prefers_convolutions(const Node& transposed, const Target&) const override {
    return transposed.results[0]->type.dtype == DType::kF32;
  }

  bool prefers_winograd(const Node& convolution, const Target& target) const override {
    return is_faster_by_winograd(convolution, target.features);
  }

  LayoutRequest layouts(const Node& node, const Target& target) const override {
    LayoutRequest request;
    if (const Schedule* schedule = find_schedule(*node.op)) {
      if (schedule->supports(node, target).yes) return schedule->layouts(node, target);
    }
    if (prefers_channels_last(node)) {
      const Layout layout = Layout::permutation(channels_last(node.operand_type(0).rank()));
      return {{layout}, {layout}};
    }
    if (!node.op->routine.empty()) {
      request.operands.assign(node.operands.size(), Layout{});
      request.results.assign(node.results.size(), Layout{});
    }
    return request;
  }

  bool may_fuse_consumer(const Node& root, const Node& consumer, const Target& target) const override {
    return may_take_consumer(root, consumer, target);
  }
  bool may_fuse_producer(const Node& root, const Node& producer, const Target& target) const override {
    return may_take_producer(root, producer, target);
  }

  std::vector<LoweredStep> lower(const Node& node, const SymbolTable& symbols,
                                 const Target& target) const override {
    if (!node.op->routine.empty()) return {lower_routine(node)};
    const Members members = members_of(node);
    const Node* contraction = find_contraction(members);
    const Schedule* schedule = contraction != nullptr ? find_ready_schedule(*contraction, target) : nullptr;
    std::vector<LoweredStep> steps;
    zero_paddings(node, symbols, target, steps);
    steps.push_back(schedule != nullptr ? lower_contraction(members, *contraction, *schedule, symbols, target)
                    : supports_transposition(node).yes ? lower_transposition(node, symbols, target)
                                                       : lower_loops(members, symbols, target));
    for (LoweredStep& step : steps) step = guarded(std::move(step));
    return steps;
  }
};

}  // namespace

const Backend& backend() {
  static const CpuBackend instance;
  return instance;
}

}  // namespace ingot::core::cpu
