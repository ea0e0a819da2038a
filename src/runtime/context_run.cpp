// SPDX-License-Identifier: Apache-2.0
// A run: where its arguments and outputs lie, what is enqueued, and what is kept until that is done.
#include <algorithm>

#include <fmt/core.h>

#include "runtime/context.h"
#include "runtime/context_state.h"
#include "runtime/device_collectives.h"
#include "runtime/waits.h"
#include "runtime/weight_plan.h"
#include "support/error.h"

namespace ingot::core {
namespace {

[[noreturn]] void refuse_place(const Port& port, bool on_device) {
  throw UserError("INGOT-U319",
                  fmt::format("'{}' is on {}, but the engine has it on {}", port.name,
                              on_device ? "a device" : "the host", on_device ? "the host" : "a device"),
                  on_device ? "copy it to the host" : "copy it to the device");
}

void require_same_gpu(const Engine& engine, const Port& port, const Argument& argument) {
  if (!argument.on_device || argument.gpu == engine.gpu()) [[likely]]
    return;
  throw UserError(
      "INGOT-U319",
      fmt::format("'{}' is on GPU {} (cuda:{}), but the engine and its weights are on GPU {} (cuda:{})",
                  port.name, argument.gpu, argument.gpu, engine.gpu(), engine.gpu()),
      "move the tensor, or load or build the engine for that GPU");
}

}  // namespace

std::byte* Context::place_state(const ArgumentSlot& slot, const Argument& argument) {
  auto* data = static_cast<std::byte*>(argument.data);
  require_same_gpu(*engine_, *slot.port, argument);
  if (!is_dense(argument))
    throw UserError(
        "INGOT-U306",
        fmt::format("input '{}' is updated in place, but its memory is not contiguous", slot.port->name),
        "call .contiguous() on it before");
  DeviceMemory* memory = memory_of(*engine_, *slot.port);
  if (argument.on_device == (memory != nullptr)) return data;
  if (argument.on_device) refuse_place(*slot.port, true);
  const size_t bytes = dense_bytes(argument);
  synchronize();  // an earlier run may still be using the memory, which may also be replaced
  std::byte* staged = state_->updates.stage(slot.index, data, bytes, *memory);
  copy_in(memory, staged, data, bytes);
  return staged;
}

std::byte* Context::place_input(const ArgumentSlot& slot, const Argument& argument) {
  auto* data = static_cast<std::byte*>(argument.data);
  require_same_gpu(*engine_, *slot.port, argument);
  const bool dense = is_dense(argument);
  DeviceMemory* memory = memory_of(*engine_, *slot.port);
  const bool in_place = argument.on_device == (memory != nullptr);
  if (dense && in_place) [[likely]]
    return data;
  if (argument.on_device && !in_place) refuse_place(*slot.port, true);
  if (argument.on_device)
    throw UserError(
        "INGOT-U306",
        fmt::format("input '{}' is on a device, and its memory is not contiguous", slot.port->name),
        "call .contiguous() on it before");
  const Tensor copy = dense ? Tensor{} : to_dense(view_of(argument));
  const size_t bytes = dense_bytes(argument);
  if (memory != nullptr) synchronize();  // as for states
  std::byte* own = state_->copies[slot.index].reserve(bytes, memory);
  copy_in(memory, own, dense ? data : copy.data.get(), bytes);
  return own;
}

void Context::place_arguments(std::span<const Argument> inputs) {
  state_->updates.begin();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ArgumentSlot& slot = state_->slots[i];
    if (slot.is_state)
      state_->set_state(slot.index, place_state(slot, inputs[i]));
    else
      state_->inputs[slot.index] = place_input(slot, inputs[i]);
  }
}

// Memory for one output, in the place of its port.
std::byte* Context::place_output(const OutputAllocator& allocator, size_t index, DType dtype,
                                 std::span<const int64_t> shape, size_t bytes) {
  const Port& port = engine_->data().main.outputs[index];
  DeviceMemory* memory = memory_of(*engine_, port);
  if (allocator.on_device && memory == nullptr) refuse_place(port, false);
  if (port.is_complex) {
    dtype = complex_of(dtype);
    shape = shape.first(shape.size() - 1);
  }
  auto* own = static_cast<std::byte*>(allocator.allocate(allocator.context, index, dtype, shape, bytes));
  if (memory == nullptr || allocator.on_device || own == nullptr) [[likely]]
    return own;
  return state_->outputs.stage(index, own, bytes, *memory);
}

void Context::require_weights(const WeightSet& weights) const {
  if (!weights.missing) [[likely]]
    return;
  const std::string& name = engine_->data().weights[*weights.missing].name;
  throw UserError(
      "INGOT-U323", fmt::format("the engine has no value of the weight '{}'", name),
      "it was saved without weights: give them when it is loaded (weights=, --weights), or by refit");
}

std::shared_ptr<const WeightSet> Context::weights_of(const RunOptions& options) const {
  const Engine& owner = options.weights == nullptr ? *engine_ : *options.weights;
  if (&owner != engine_.get()) {
    engine_->require_copy(owner);
    engine_->count_copy(owner);
  }
  owner.require_verified_weights();
  std::shared_ptr<const WeightSet> weights = owner.weights();
  require_weights(*weights);
  return weights;
}

void Context::run(std::span<const Argument> given, const OutputAllocator& allocator,
                  const RunOptions& options) {
  const RunLimits& limits = options.limits;
  const std::span<const Argument> inputs = accept(given);
  RunPlan& plan = plan_for(inputs);
  place_arguments(inputs);
  const std::shared_ptr<const WeightSet> weights = weights_of(options);
  struct Caller {
    Context& context;
    const OutputAllocator& allocator;
  } caller{*this, allocator};
  const auto allocate = [](void* context, size_t index, DType dtype, std::span<const int64_t> shape,
                           size_t bytes) {
    const auto& own = *static_cast<const Caller*>(context);
    return own.context.place_output(own.allocator, index, dtype, shape, bytes);
  };
  state_->outputs.begin();
  std::byte* const weight_ring = place_weight_ring(*weights);
  const RunResources resources{
      .data = engine_->data(),
      .program = engine_->data().main,
      .backends = engine_->backends(),
      .queues = state_->queues,
      .stream = options.stream,
      .pool = pool(),
      .weights = *weights,
      .inputs = state_->inputs,
      .states = state_->states,
      .states_version = state_->states_version,
      .outputs = {allocate, &caller},
      .arenas = state_->arenas,
      .working_memory = state_->working_memory,
      .weight_ring = weight_ring,
      .profile = state_->profile.get(),
      .observer = state_->observer,
      .limits = limits.deadline_ns != 0 || limits.cancel != nullptr ? &limits : nullptr,
      .uses_graphs = state_->uses_graphs,
      .names_ranges = engine_->host().names_ranges() && !engine_->data().devices.empty(),
      .groups = &state_->groups};
  if (state_->profile != nullptr) [[unlikely]]
    state_->profile->begin_run(engine_->main(), plan);
  const GroupRun group_run(state_->groups);
  try {
    open_groups();
    run_main(resources, engine_->main(), plan);
    if (!engine_->data().devices.empty()) finish(weights, allocator.on_device);
  } catch (const std::exception& error) {
    group_run.leave(error.what());
    abandon();
    throw;
  } catch (...) {
    abandon();
    throw;
  }
  if (state_->may_have_grown()) [[unlikely]]
    publish_memory();
  if (state_->profile != nullptr) [[unlikely]]
    state_->profile->end_run();
}

// At the first run: all ranks are in it.
void Context::open_groups() {
  if (!state_->has_unopened_groups) [[likely]]
    return;
  const Log& log = engine_->host().log();
  const LoadedBackends& backends = engine_->backends();
  Queue& queue = *state_->queues[backends.position(engine_->data().devices.front())];
  open_device_groups(state_->groups, queue, [&](LogLevel level, const std::string& line) {
    if (log.wants(level)) log.write(level, line);
  });
  state_->has_unopened_groups = false;
}

// A block of the size that the weights need; what an earlier one took is free before it is allocated.
std::byte* Context::place_weight_ring(const WeightSet& weights) {
  const size_t bytes = weights.plan != nullptr ? weights.plan->ring : 0;
  const bool is_last = !state_->in_use.empty() && state_->in_use.back().get() == &weights;
  if (bytes + state_->weight_ring.bytes() == 0 || is_last) [[likely]]
    return state_->weight_ring.reserve(0);
  synchronize();
  state_->in_use.clear();
  if (bytes != state_->weight_ring.bytes() && state_->recorded == 0) state_->weight_ring = GrowingBlock();
  return bytes == 0 ? nullptr : state_->weight_ring.reserve(bytes, engine_->backends().memories[1]);
}

// What is enqueued needs its weights until it is done; what the caller wants on the host has to be there.
// Weights that only this context still holds would take memory until it is.
void Context::finish(const std::shared_ptr<const WeightSet>& weights, bool may_return_early) {
  auto& in_use = state_->in_use;
  const bool checks_now = state_->checks_at_once && recorded_spans() == state_->recorded;
  const bool holds_old =
      std::ranges::any_of(in_use, [&](const auto& each) { return each != weights && each.use_count() == 1; });
  if (!may_return_early || checks_now || state_->reads_host || state_->updates.pending() || holds_old) {
    synchronize();
    in_use.clear();
  }
  std::erase(in_use, weights);
  in_use.push_back(weights);
  state_->outputs.finish();
  state_->updates.finish();
  keep_recorded(weights);
}

// What a caller has recorded, in a CUDA graph, uses the memory of this run whenever it is repeated.
void Context::keep_recorded(const std::shared_ptr<const WeightSet>& weights) {
  const uint64_t recorded = recorded_spans();
  if (recorded == state_->recorded) [[likely]]
    return;
  state_->recorded = recorded;
  state_->weight_ring.keep_outgrown();
  for (auto* blocks : {&state_->arenas, &state_->copies}) {
    for (GrowingBlock& block : *blocks) block.keep_outgrown();
  }
  if (std::ranges::find(state_->recorded_weights, weights) == state_->recorded_weights.end())
    state_->recorded_weights.push_back(weights);
}

uint64_t Context::recorded_spans() const {
  uint64_t recorded = 0;
  for (const auto& queue : state_->queues) recorded += queue->recorded();
  return recorded;
}

// The first failure is the one that is reported.
void Context::abandon() const noexcept {
  for (const auto& queue : state_->queues) queue->abandon();
}

void Context::synchronize() const {
  for (const auto& queue : state_->queues) wait_for(engine_->data(), engine_->data().main, *queue);
}

}  // namespace ingot::core
