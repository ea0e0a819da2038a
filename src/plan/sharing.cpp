// SPDX-License-Identifier: Apache-2.0
#include "plan/sharing.h"

#include <fmt/core.h>

#include <algorithm>

#include "ir/in_place.h"
#include "ops/alias.h"
#include "ops/ops.h"
#include "support/error.h"

namespace ingot::core {
namespace {

bool is_in_arena(const Memory& memory) { return std::holds_alternative<ArenaStorage>(memory.storage); }
bool is_state(const Memory& memory) { return std::holds_alternative<StateStorage>(memory.storage); }

// The same size in bytes, whatever the elements are: enough if every byte is overwritten.
bool same_bytes(const TensorType& a, const TensorType& b) { return storage_bytes(a) == storage_bytes(b); }

}  // namespace

Sharing::Sharing(const PlanInput& input) : input_(input) {
  collect_uses();
  add_sources();
  for (int i = 0; i < static_cast<int>(input_.steps.size()); ++i) place_results_of(i);
  bind_outputs();
  bind_updates();
}

void Sharing::collect_uses() {
  for (int i = 0; i < static_cast<int>(input_.steps.size()); ++i) {
    const LoweredStep& step = input_.steps[static_cast<size_t>(i)].step;
    for (size_t k = 0; k < step.arguments.size(); ++k) {
      if (step.arguments[k] != nullptr) last_use_[aliases_.root(step.arguments[k])] = i;
    }
    const auto* routine = std::get_if<RoutineStep>(&step.action);
    if (routine != nullptr && routine->with_next != kNoId)
      last_use_[aliases_.root(step.arguments[0])] = i + 1;  // read by what does both
  }
  for (const Value* output : input_.graph->outputs) last_use_[aliases_.root(output)] = kEnd;
  for (const Update& update : input_.graph->updates) {
    last_use_[aliases_.root(update.value)] = kEnd;
    const Value* value = aliases_.root(update.value);
    updates_.emplace(value, update.target);
    while (const auto in_place = in_place_update(*value)) {
      value = aliases_.root(in_place->operand);
      updates_.emplace(value, update.target);
    }
  }
}

size_t Sharing::add_memory(Memory memory, const Value* value) {
  memories_.push_back(std::move(memory));
  share(value, {memories_.size() - 1});
  return memories_.size() - 1;
}

void Sharing::share(const Value* value, const Location& location) {
  locations_.emplace(value, location);
  order_.push_back(value);
  const auto use = last_use_.find(value);
  Memory& memory = memories_[location.memory];
  if (use != last_use_.end()) memory.last = std::max(memory.last, use->second);
}

void Sharing::add_sources() {
  const auto& inputs = input_.graph->inputs();
  for (uint32_t i = 0; i < inputs.size(); ++i) {
    add_memory({.storage = InputStorage{i}, .type = inputs[i]->type}, inputs[i]);
  }
  for (const auto& node : input_.graph->nodes()) {
    if (!node->op->traits.has(Trait::kSource)) continue;
    const Value* value = node->results[0];
    if (node->op == &ops::state) {
      const auto index = static_cast<uint32_t>(states_.size());
      states_.push_back(value);
      add_memory({.storage = StateStorage{index}, .type = value->type}, value);
      continue;
    }
    const auto id = input_.weights.find(value);
    invariant(id != input_.weights.end(), "the planner has no weight id for a source");
    const Storage storage = node->op == &ops::constant ? Storage(ConstantStorage{id->second})
                                                       : Storage(WeightStorage{id->second});
    add_memory({.storage = storage, .type = value->type}, value);
  }
}

// Views have no step: they are located when a user needs them.
Location Sharing::locate(const Value* value) {
  const auto known = locations_.find(value);
  if (known != locations_.end()) return known->second;
  const std::optional<Dim> offset = value->producer == nullptr ? std::nullopt : aliases_.of(*value->producer);
  invariant(offset.has_value(), "a step reads a value that no earlier step computed");
  Location location = locate(value->producer->operands[0]);
  location.offset = location.offset + *offset;
  share(value, location);
  return location;
}

bool Sharing::fills(const Value* value, size_t memory) const {
  const auto known = locations_.find(value);
  return known->second.offset == Dim(0) && same_bytes(value->type, memories_[memory].type);
}

bool Sharing::dies(const Value* operand, int index) const {
  return memories_[locations_.at(operand).memory].last <= index;
}

bool Sharing::is_on_host(int index) const {
  const NodeStep& step = input_.steps[static_cast<size_t>(index)];
  return input_.place.kind == Place::Kind::kDevice && step.step.kernel() != nullptr &&
         step.backend != input_.backend;
}

// The operand is dead after the step, it is in the step's place, no other argument of the step overlaps it,
// and the result has no required location elsewhere.
bool Sharing::may_take_over(const Value* operand, const Value* result, int index) {
  const size_t memory = locate(operand).memory;
  const auto shares = [&](const Value* argument) {
    const auto found = locations_.find(argument);
    return found != locations_.end() && found->second.memory == memory;
  };
  const LoweredStep& step = input_.steps[static_cast<size_t>(index)].step;
  if (is_in_arena(memories_[memory]) && memories_[memory].on_host != is_on_host(index)) return false;
  if (memories_[memory].last > index || std::ranges::count_if(step.arguments, shares) != 1) return false;
  if (!fills(operand, memory) || !same_bytes(operand->type, result->type)) return false;
  if (is_in_arena(memories_[memory])) return true;
  const auto update = updates_.find(result);
  return is_state(memories_[memory]) && update != updates_.end() &&
         locations_.at(update->second).memory == memory;
}

const Value* Sharing::operand_to_take_over(const Value* result, int index) {
  const LoweredStep& step = input_.steps[static_cast<size_t>(index)].step;
  for (const uint32_t position : step.may_overwrite) {
    const Value* operand = step.arguments.at(position);
    if (may_take_over(operand, result, index)) return operand;
  }
  return nullptr;
}

void Sharing::place_result(int index, const Value* result) {
  if (const auto update = in_place_update(*result)) {
    const Value* operand = update->operand;
    invariant(operand->type == result->type,
              fmt::format("%{} is written in place of {}", result->name, operand->dtype_and_shape()));
    // What is read besides is one argument of the step, too, read while it is overwritten.
    if (!update->is_read_too && may_take_over(operand, result, index)) return share(result, locate(operand));
    copies_.push_back({.before = index, .from = operand, .to = result});
  } else if (const Value* operand = operand_to_take_over(result, index)) {
    return share(result, locate(operand));
  }
  add_memory({.type = result->type, .first = index, .on_host = is_on_host(index)}, result);
}

void Sharing::place_results_of(int index) {
  const LoweredStep& step = input_.steps[static_cast<size_t>(index)].step;
  for (size_t k = 0; k < step.arguments.size(); ++k) {
    if (step.arguments[k] != nullptr && !step.writes[k]) locate(step.arguments[k]);
  }
  for (size_t k = 0; k < step.arguments.size(); ++k) {
    const Value* argument = step.arguments[k];
    if (argument == nullptr || !step.writes[k]) continue;
    if (!locations_.contains(argument)) place_result(index, argument);
    Memory& memory = memories_[locations_.at(argument).memory];
    memory.first = std::min(memory.first, index);
    memory.last = std::max(memory.last, index);
  }
}

void Sharing::bind_outputs() {
  for (uint32_t i = 0; i < input_.graph->outputs.size(); ++i) {
    const Value* value = input_.graph->outputs[i];
    const size_t memory = locate(value).memory;
    if (is_in_arena(memories_[memory]) && fills(value, memory)) {
      memories_[memory].storage = OutputStorage{i};
      memories_[memory].type = value->type;
    } else {
      memories_.push_back({.storage = OutputStorage{i}, .type = value->type});
      copies_.push_back({.before = kEnd, .from = value, .to = nullptr, .to_memory = memories_.size() - 1});
    }
  }
}

// Computes the value directly in the state's memory, if the old state is dead by then.
bool Sharing::computed_in_state(const Update& update) {
  invariant(update.value->type == update.target->type,
            fmt::format("%{} is updated by {}", update.target->name, update.value->dtype_and_shape()));
  const size_t state = locate(update.target).memory;
  const Location at = locate(update.value);
  if (at.memory == state) return fills(update.value, state);
  Memory& memory = memories_[at.memory];
  const bool moves =
      is_in_arena(memory) && fills(update.value, at.memory) && memories_[state].last < memory.first;
  if (!moves) return false;
  memory.storage = AliasStorage{.of = static_cast<BufferId>(state)};
  return true;
}

// Values located in a state are saved before any state is written.
void Sharing::bind_updates() {
  std::vector<PlannedCopy> stores;
  for (const Update& update : input_.graph->updates) {
    if (computed_in_state(update)) continue;
    PlannedCopy store{.before = kEnd, .from = update.value, .to = update.target};
    if (is_state(memories_[locate(update.value).memory])) {
      memories_.push_back({.type = update.value->type});
      store.from_memory = memories_.size() - 1;
      copies_.push_back(
          {.before = kEnd, .from = update.value, .to = nullptr, .to_memory = store.from_memory});
      store.from = nullptr;
    }
    stores.push_back(store);
  }
  copies_.insert(copies_.end(), stores.begin(), stores.end());
}

}  // namespace ingot::core
