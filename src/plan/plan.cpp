// SPDX-License-Identifier: Apache-2.0
#include "plan/plan.h"

#include <algorithm>

#include "ir/in_place.h"
#include "ops/model_source.h"
#include "plan/arena_order.h"
#include "plan/copy_step.h"
#include "plan/host_steps.h"
#include "plan/own_storage.h"
#include "plan/sharing.h"
#include "support/error.h"

namespace ingot::core {
namespace {

// Builds buffers, ports and steps from the decisions of Sharing.
class Builder {
 public:
  // `symbols`: of the outermost graph.
  Builder(const PlanInput& input, const SymbolTable& symbols)
      : input_(input), symbols_(symbols), sharing_(input) {
    program_.name = input.graph->name;
    program_.symbols = input.graph->symbols;
  }

  Program build() {
    add_buffers();
    add_ports();
    for (size_t i = 0; i < input_.steps.size(); ++i) {
      add_copies(static_cast<int>(i));
      add_step(input_.steps[i]);
    }
    add_copies(kEnd);
    for (Buffer& buffer : program_.buffers) buffer.place = input_.place;
    if (input_.place.kind == Place::Kind::kDevice) give_host_copies(program_, symbols_, input_.backend);
    part_from_next();
    return std::move(program_);
  }

 private:
  // Of steps between which a copy came.
  void part_from_next() {
    for (size_t i = 0; i < program_.steps.size(); ++i)
      if (!has_its_next(program_, i)) program_.steps[i].as<RoutineStep>()->with_next = kNoId;
  }

  void add_buffers() {
    const auto& memories = sharing_.memories();
    for (const Memory& memory : memories) {
      Buffer buffer{.type = memory.type, .storage = memory.storage};  // memory k is buffer k
      if (buffer.as<ArenaStorage>() != nullptr) buffer.storage = own_storage(buffer.type, symbols_);
      program_.buffers.push_back(std::move(buffer));
    }
    for (const Value* value : sharing_.located()) add_value(value);
  }

  void add_value(const Value* value) {
    const Location location = sharing_.location(value);
    auto id = static_cast<BufferId>(location.memory);
    Buffer& root = program_.buffers[id];
    if (location.offset == Dim(0) && root.type == value->type) {
      if (root.name.empty()) root.name = value->name;
    } else {
      Buffer alias{.name = value->name, .type = value->type, .storage = AliasStorage{id, location.offset}};
      id = static_cast<BufferId>(program_.buffers.size());
      program_.buffers.push_back(std::move(alias));
    }
    buffers_.emplace(value, id);
  }

  void add_ports() {
    for (const Value* value : input_.graph->inputs()) {
      program_.inputs.push_back({value->name, value->type, buffers_.at(value)});
    }
    for (const Value* value : sharing_.states()) {
      const auto name = value->producer->attributes<ops::ModelSource>().name;
      program_.states.push_back({name, value->type, buffers_.at(value)});
    }
    program_.outputs.resize(input_.graph->outputs.size());
    for (BufferId id = 0; id < sharing_.memories().size(); ++id) {
      const Buffer& buffer = program_.buffers[id];
      const auto* output = buffer.as<OutputStorage>();
      if (output == nullptr) continue;
      program_.outputs[output->index] = {input_.graph->outputs[output->index]->name, buffer.type, id};
    }
  }

  void add_copies(int before) {
    for (const PlannedCopy& copy : sharing_.copies()) {
      if (copy.before != before) continue;
      const BufferId from = copy.from ? buffers_.at(copy.from) : static_cast<BufferId>(copy.from_memory);
      const BufferId to = copy.to ? buffers_.at(copy.to) : static_cast<BufferId>(copy.to_memory);
      program_.steps.push_back(copy_step(from, to));
    }
  }

  void add_step(const NodeStep& node_step) {
    const LoweredStep& lowered = node_step.step;
    Step step{.name = lowered.name};
    step.action = action_of(node_step);
    for (size_t k = 0; k < lowered.arguments.size(); ++k) {
      step.uses.push_back(use_of(lowered.arguments[k], lowered.writes[k]));
    }
    for (const auto& [symbol, value] : lowered.binds)
      step.binds.push_back({symbol, buffers_.at(value), limit_of(symbol)});
    step.host_sees_result = !lowered.binds.empty();
    step.nodes = node_step.node_records;
    step.operations = node_step.operations;
    step.bytes = node_step.bytes;
    program_.steps.push_back(std::move(step));
  }

  Action action_of(const NodeStep& node_step) {
    const auto first = static_cast<uint32_t>(program_.nested.size());
    for (const NestedSteps& nested : node_step.nested) program_.nested.push_back(plan_nested(nested));
    const auto& lowered = node_step.step.action;
    if (const auto* kernel = std::get_if<LoweredKernel>(&lowered))
      return KernelStep{node_step.backend, kernel->launch};
    if (const auto* routine = std::get_if<RoutineStep>(&lowered)) return *routine;
    if (std::holds_alternative<LoopStep>(lowered)) return LoopStep{first};
    return BranchStep{first, first + 1};
  }

  // With an arena of its own.
  Program plan_nested(const NestedSteps& nested) const {
    PlanReport unread;
    PlanInput input = input_;
    input.graph = nested.graph;
    input.steps = nested.steps;
    Program program = Builder(input, symbols_).build();
    order_arena(program, input.typical, unread);
    return program;
  }

  BufferUse use_of(const Value* value, bool writes) const {
    if (value == nullptr) return {kNoId, false, false};
    return {buffers_.at(value), !writes || in_place_update(*value).has_value(), writes};
  }

  Dim limit_of(const std::string& symbol) const {
    const SymbolInfo& info = symbols_.at(symbol);
    return info.upper_bound.value_or(Dim(info.range.max));
  }

  const PlanInput& input_;
  const SymbolTable& symbols_;
  Sharing sharing_;
  Program program_;
  std::map<const Value*, BufferId> buffers_;
};

}  // namespace

Program plan_program(const PlanInput& input, PlanReport* report) {
  PlanReport local;
  Program program = Builder(input, input.graph->symbols).build();
  order_arena(program, input.typical, report != nullptr ? *report : local);
  return program;
}

}  // namespace ingot::core
