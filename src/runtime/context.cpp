// SPDX-License-Identifier: Apache-2.0
#include "runtime/context.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include <fmt/core.h>

#include "runtime/context_state.h"
#include "runtime/device_collectives.h"
#include "support/error.h"

namespace ingot::core {

namespace {

// Memory of its own: nothing that was enqueued touches it.
Tensor initial_value(const Engine& engine, size_t state, const MemoryAllocator* allocator) {
  DeviceMemory* memory = memory_of(engine, engine.data().main.states[state]);
  const Tensor& value = engine.data().state_values[state];
  Tensor own{nullptr, value.dtype, value.shape};
  own.data = memory != nullptr ? memory->allocate(own.bytes()) : allocate_memory(own.bytes(), allocator);
  if (value.data != nullptr) {
    copy_in(memory, own.data.get(), value.data.get(), value.bytes());
  } else if (memory == nullptr) {
    std::memset(own.data.get(), 0, own.bytes());
  } else {
    copy_in(memory, own.data.get(), make_tensor(value.dtype, value.shape).data.get(), own.bytes());
  }
  return own;
}

void use_allocator(const MemoryAllocator* allocator, Frame& frame) {
  frame.blocks.assign(frame.blocks.size(), GrowingBlock(allocator));
  for (Frame& nested : frame.nested) use_allocator(allocator, nested);
}

bool is_owned(const EngineData& data, size_t state) {
  const auto& bound = data.signature.mutated_inputs;
  return state >= bound.size() || !bound[state];
}

void check_same_states(std::span<const Tensor> own, std::span<const Tensor> others) {
  const bool same = std::ranges::equal(own, others, [](const Tensor& a, const Tensor& b) {
    return a.dtype == b.dtype && a.shape == b.shape && (a.data == nullptr) == (b.data == nullptr);
  });
  if (!same) throw UserError("INGOT-U307", "the contexts have states of other sizes, or bound ones");
}

}  // namespace

Context::Context(std::shared_ptr<Engine> engine, const ContextOptions& options)
    : engine_(std::move(engine)), state_(std::make_unique<ContextState>()) {
  engine_->require_unchanged();
  state_->counters = engine_->counters().claim();
  if (options.threads > 0) state_->pool = engine_->host().make_pool(options.threads);
  state_->allocator = options.allocator;
  state_->checks_at_once = options.checks_at_once;
  state_->uses_graphs = options.uses_graphs;
  state_->groups = bind_groups(engine_->data(), options.groups);
  state_->has_unopened_groups =
      !state_->groups.groups.empty() && has_device_collectives(engine_->data().main);
  check_parts(engine_->weights()->ranks, state_->groups);
  const GrowingBlock empty(state_->memory_source());
  state_->working_memory = empty;
  state_->arenas.assign((kMaxNesting + 1) * engine_->backends().memories.size(), empty);
  const EngineData& data = engine_->data();
  state_->slots = argument_slots(data);
  state_->pairs = PairedArguments(state_->slots);
  state_->inputs.resize(data.main.inputs.size());
  state_->copies.assign(data.main.inputs.size(), empty);
  state_->states.resize(data.main.states.size());
  state_->owned.resize(data.main.states.size());
  state_->reads_host = std::ranges::any_of(
      data.main.inputs, [&](const Port& port) { return memory_of(*engine_, port) == nullptr; });
  state_->queues = open_queues(engine_->backends(), state_->memory_source());
  for (size_t i = 0; i < state_->owned.size(); ++i) {
    if (is_owned(data, i)) bind_state(i, nullptr);
  }
  publish_memory();
}

Context::~Context() = default;
Context::Context(Context&&) noexcept = default;

void Context::bind_state(size_t index, void* data) {
  if (index >= state_->states.size())
    throw UserError("INGOT-U307", fmt::format("the engine has no state {}", index));
  Tensor& own = state_->owned[index];
  if (data != nullptr) {
    if (own.data != nullptr) synchronize();
    own = {};
  } else if (own.data == nullptr) {
    own = initial_value(*engine_, index, state_->memory_source());
  }
  state_->set_state(index, data != nullptr ? static_cast<std::byte*>(data) : own.data.get());
  state_->has_unpublished_memory = true;
}

void Context::reset_states() {
  synchronize();
  for (size_t i = 0; i < state_->owned.size(); ++i) {
    if (state_->owned[i].data == nullptr) continue;
    state_->owned[i] = initial_value(*engine_, i, state_->memory_source());
    state_->set_state(i, state_->owned[i].data.get());
  }
}

void Context::copy_states(const Context& other) {
  const std::vector<Tensor>&own = state_->owned, &others = other.state_->owned;
  check_same_states(own, others);
  other.synchronize();
  synchronize();
  for (size_t i = 0; i < own.size(); ++i) {
    if (own[i].data == nullptr) continue;
    DeviceMemory* memory = memory_of(*engine_, engine_->data().main.states[i]);
    copy_in(memory, own[i].data.get(), others[i].data.get(), own[i].bytes());
  }
}

void Context::take_states(Context& other) {
  std::vector<Tensor>&own = state_->owned, &others = other.state_->owned;
  check_same_states(own, others);
  other.synchronize();
  synchronize();
  own.swap(others);
  for (size_t i = 0; i < own.size(); ++i) {
    if (own[i].data == nullptr) continue;
    state_->set_state(i, own[i].data.get());
    other.state_->set_state(i, others[i].data.get());
  }
}

std::span<const Argument> Context::accept(std::span<const Argument> given) {
  check_arguments(state_->slots, given);
  return state_->pairs.view(given);
}

RunPlan& Context::plan_for(std::span<const Argument> inputs) {
  RunPlan* last = state_->plans.front();
  ContextCounters& counters = *state_->counters;
  if (last != nullptr && has_sizes(inputs, last->key)) [[likely]] {
    counters.plan_hits.add();
    return *last;
  }
  std::vector<int64_t> key = sizes_key(inputs);
  if (RunPlan* known = state_->plans.find(key)) {
    counters.plan_hits.add();
    return *known;
  }
  const Executable& main = engine_->main();
  std::vector<int64_t> symbols =
      bind_sizes(engine_->data(), *main.dims, state_->groups, state_->slots, inputs);
  const auto start = std::chrono::steady_clock::now();
  RunPlan plan = make_run_plan(main, std::move(key), std::move(symbols));
  use_allocator(state_->memory_source(), plan.frame);
  const bool has_blocks = !main.data_dependent_buffers.empty();
  if (has_blocks && state_->plans.is_full()) synchronize();  // a plan's memory is freed
  const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - start;
  log_plan(inputs, time.count());
  counters.plan_misses.add();
  if (state_->plans.is_full()) counters.plan_evictions.add();
  state_->has_unpublished_memory = true;
  return *state_->plans.add(std::move(plan));
}

// What `memory` reports, for other threads.
void Context::publish_memory() const {
  const Memory held = memory();
  ContextCounters& counters = *state_->counters;
  counters.arena_bytes.set(held.arena);
  counters.scratch_bytes.set(held.scratch);
  counters.state_bytes.set(held.states);
  counters.cached_plans.set(held.cached_plans);
  state_->published_working_memory = state_->working_memory.bytes();
  state_->has_unpublished_memory = false;
}

ContextCounters& Context::counters() const { return *state_->counters; }

void Context::log_plan(std::span<const Argument> inputs, double microseconds) {
  const Log& log = engine_->host().log();
  if (log.wants(LogLevel::kInfo))
    log.write(LogLevel::kInfo,
              fmt::format("planned {} in {:.1f} us", describe_sizes(state_->slots, inputs), microseconds));
  if (state_->plans.size() < PlanCache::kCapacity || std::exchange(state_->has_many_shapes, true)) return;
  if (log.wants(LogLevel::kWarning))
    log.write(LogLevel::kWarning, fmt::format("a context has seen more than {} shapes and forgets the plan "
                                              "of the oldest: pad inputs to fewer shapes",
                                              PlanCache::kCapacity));
}

ThreadPool& Context::pool() const { return state_->pool != nullptr ? *state_->pool : engine_->host().pool(); }
int Context::threads() const { return pool().threads(); }
bool Context::is_usable() const {
  return std::ranges::all_of(state_->groups.groups,
                             [](const auto& bound) { return bound.group->is_usable(); });
}

void Context::set_profiling(bool on, std::function<bool()> counts) {
  state_->profile = on ? std::make_unique<StepProfile>(std::move(counts)) : nullptr;
}

void Context::set_observer(const StepObserver* observer) { state_->observer = observer; }

std::string Context::profile() const {
  if (state_->profile == nullptr)
    throw UserError("INGOT-U340", "profiling is off", "turn it on before the runs");
  return state_->profile->json(engine_->data(), engine_->backends(), pool());
}

std::vector<int64_t> Context::step_nanoseconds() const {
  return state_->profile != nullptr ? state_->profile->least_nanoseconds() : std::vector<int64_t>();
}

std::vector<std::vector<int64_t>> Context::output_shapes(std::span<const Argument> inputs) {
  const RunPlan& plan = plan_for(accept(inputs));
  const Executable& main = engine_->main();
  std::vector<std::vector<int64_t>> shapes;
  for (const Port& output : main.program->outputs) {
    std::vector<int64_t>& shape = shapes.emplace_back();
    for (const DimSlot slot : main.buffers[output.buffer].shape) {
      shape.push_back(main.dims->is_data_dependent(slot) ? -1 : plan.values[slot]);
    }
    if (output.is_complex) shape.pop_back();
  }
  return shapes;
}

Context::Memory Context::memory() const {
  Memory memory{.arena = 0,
                .states = 0,
                .scratch = state_->working_memory.bytes(),
                .cached_plans = state_->plans.size()};
  for (const auto& queue : state_->queues) memory.scratch += queue->scratch_bytes();
  for (const GrowingBlock& arena : state_->arenas) memory.arena += arena.bytes();
  for (const Tensor& state : state_->owned) memory.states += state.data ? state.bytes() : 0;
  return memory;
}

}  // namespace ingot::core
