// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "compiler/step_work.h"
#include "ir/control_flow.h"
#include "ops/alias.h"
#include "support/error.h"

namespace ingot::core {
namespace {

// The code generator is asked for where kernels are compiled: it may not be installed elsewhere.
void set_image(LoweredKernel& kernel, const BackendTarget& on, ImageTable& images) {
  kernel.key = fmt::format("for {}:{}\n{}", on.target.backend, on.target.device, kernel.key);
  if (!images.shares) kernel.key += fmt::format("\nuse {}", images.ids.size());
  const auto [entry, is_new] = images.ids.try_emplace(kernel.key, static_cast<ImageId>(images.ids.size()));
  if (is_new && images.work != nullptr)
    images.work->add(fmt::format("code by {}\n{}", on.backend->generator(), kernel.key),
                     std::move(kernel.compile));
  kernel.compile = nullptr;
  kernel.launch.image = entry->second;
}

// The tactic that was the fastest before: then there is nothing left to time.
void take_known_tactic(LoweredStep& step, const KnownTactics& known, int level) {
  const TacticRecord* record = known.table.find(known.processor, step.site, level);
  if (record == nullptr) return;
  const auto found = std::ranges::find(step.others, record->tactic, &LoweredKernel::tactic);
  if (found != step.others.end()) std::swap(*found, *step.kernel());
  if (step.kernel()->tactic == record->tactic) step.others.clear();
}

void choose_known_tactic(LoweredStep& step, const KnownTactics* known, int level) {
  if (known != nullptr) take_known_tactic(step, *known, level);
  if (known == nullptr || !known->can_time) step.others.clear();
}

// A digest of all that decides which tactics there are, and how fast they are.
std::string site_of(const LoneNode& lone, size_t step, const Target& target) {
  const std::string text = fmt::format("{}:{} numerics {} step {}\n{}", target.backend, target.device,
                                       static_cast<int>(target.numerics), step, lone.text());
  return hex(digest(as_bytes(text)));
}

const LoweredNode& lower_alone(LoneNode lone, const BackendTarget& on, ImageTable& images) {
  const Target& target = on.target;
  const std::string use = images.shares ? "" : fmt::format("\nuse {}", images.nodes.size());
  const auto [entry, is_new] = images.nodes.try_emplace(target.backend + " " + lone.text() + use);
  LoweredNode& lowered = entry->second;
  if (!is_new) return lowered;
  lowered.lone = std::move(lone);
  lowered.steps = on.backend->lower(*lowered.lone.node, lowered.lone.graph.symbols, target);
  for (size_t i = 0; i < lowered.steps.size(); ++i) {
    LoweredStep& step = lowered.steps[i];
    if (!step.others.empty()) {
      step.site = site_of(lowered.lone, i, target);
      choose_known_tactic(step, images.known, target.level);
    }
    if (LoweredKernel* kernel = step.kernel()) set_image(*kernel, on, images);
    for (LoweredKernel& other : step.others) set_image(other, on, images);
  }
  return lowered;
}

void substitute_all(Launch& launch, const std::map<std::string, Dim>& symbols) {
  for (auto* dims : {&launch.symbols, &launch.sizes}) {
    for (Dim& dim : *dims) dim = substitute(dim, symbols);
  }
}

// The steps of a node that was lowered, for the equal node that stands where `around` says.
std::vector<LoweredStep> steps_for(const Surroundings& around, const LoweredNode& lowered) {
  std::vector<LoweredStep> steps = lowered.steps;
  const auto outer = [&](const Value* value) {
    return value == nullptr ? nullptr : around.values[lowered.lone.positions.at(value)];
  };
  for (LoweredStep& step : steps) {
    for (Value*& argument : step.arguments) argument = outer(argument);
    for (auto& [symbol, value] : step.binds) {
      symbol = around.symbols.at(symbol).symbol_name();
      value = outer(value);
    }
    if (LoweredKernel* kernel = step.kernel()) substitute_all(kernel->launch, around.symbols);
    for (LoweredKernel& other : step.others) substitute_all(other.launch, around.symbols);
  }
  return steps;
}

// Routines read their attributes, which name symbols, where the engine runs.
std::vector<LoweredStep> lower_node(const Node& node, const BackendTarget& on, const SymbolTable& symbols,
                                    ImageTable& images) {
  if (!node.op->routine.empty()) {
    std::vector<LoweredStep> steps = on.backend->lower(node, symbols, on.target);
    for (LoweredStep& step : steps) {
      if (LoweredKernel* kernel = step.kernel()) set_image(*kernel, on, images);
      if (!step.by_peers) continue;
      set_image(*step.by_peers, on, images);
      std::get<RoutineStep>(step.action).image = step.by_peers->launch.image;
    }
    return steps;
  }
  LoneNode lone = isolate(node, symbols);
  const Surroundings around = std::exchange(lone.around, {});
  return steps_for(around, lower_alone(std::move(lone), on, images));
}

// The kernel by which GPUs of ranks do `next` too, together with `step`, the reduction before it.
void lower_with_next(LoweredStep& step, const Node& reduction, const Node& next, const BackendTarget& on,
                     const SymbolTable& symbols, ImageTable& images) {
  AliasOffsets aliases;
  const LoneNode lone = isolate(next, symbols);
  std::vector<const Value*> reduced;
  for (const Value* operand : lone.node->operands) {
    if (operand == nullptr) continue;
    const Value* outer = lone.around.values[lone.positions.at(operand)];
    const bool is_whole = product(outer->type.shape) == product(reduction.results[0]->type.shape);
    if (is_whole && aliases.root(outer) == reduction.results[0]) reduced.push_back(operand);
  }
  if (reduced.empty()) return;
  std::optional<LoweredKernel> both =
      on.backend->lower_with_next(reduction, *lone.node, reduced, lone.graph.symbols, on.target);
  if (!both) return;
  set_image(*both, on, images);
  std::get<RoutineStep>(step.action).with_next = both->launch.image;
}

// In the order that the runtime expects (engine/program.h).
LoweredStep control_step(const Node& node) {
  LoweredStep step{.name = std::string(node.op->name)};
  if (is_loop(node)) {
    step.action = LoopStep{};
    step.arguments = {nullptr};  // no trip count
  } else {
    step.action = BranchStep{};
  }
  step.arguments.insert(step.arguments.end(), node.operands.begin(), node.operands.end());
  step.writes.resize(step.arguments.size(), false);
  step.arguments.insert(step.arguments.end(), node.results.begin(), node.results.end());
  step.writes.resize(step.arguments.size(), true);
  return step;
}

}  // namespace

std::vector<NodeStep> lower_graph(const Graph& graph, const EngineBackends& backends,
                                  const SymbolTable& symbols, ImageTable& images) {
  std::vector<NodeStep> steps;
  for (const auto& node : graph.nodes()) {
    if (node->op->traits.has(Trait::kSource) || alias_offset(*node)) continue;
    const NodeStep* before = steps.empty() ? nullptr : &steps.back();
    if (before != nullptr && before->step.by_peers && !node->op->traits.has(Trait::kControlFlow) &&
        node->op->routine.empty() && &backends.of(*node) == &backends.of(*before->node))
      lower_with_next(steps.back().step, *before->node, *node, backends.of(*node), symbols, images);
    if (node->op->traits.has(Trait::kControlFlow)) {
      NodeStep& step = steps.emplace_back(NodeStep{.node = node.get(), .step = control_step(*node)});
      for (const auto& nested : node->graphs)
        step.nested.push_back({nested.get(), lower_graph(*nested, backends, symbols, images)});
      continue;
    }
    StepWork work = work_of(*node);
    const BackendTarget& on = backends.of(*node);
    for (LoweredStep& step : lower_node(*node, on, symbols, images)) {
      steps.push_back({.node = node.get(),
                       .step = std::move(step),
                       .node_records = {},
                       .operations = work.operations,
                       .bytes = work.bytes,
                       .backend = on.target.backend});
      work = {};  // the first of a node's steps accounts for the work of all
    }
  }
  return steps;
}

}  // namespace ingot::core
