// SPDX-License-Identifier: Apache-2.0
#include "runtime/context.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include <fmt/core.h>

#include "runtime/device_collectives.h"
#include "runtime/groups.h"
#include "runtime/plan_cache.h"
#include "runtime/program_run.h"
#include "runtime/transfers.h"
#include "runtime/weight_plan.h"
#include "support/error.h"

namespace ingot::core {

struct Context::State {
  EngineCounters::Claimed counters;
  std::optional<MemoryAllocator> allocator;
  std::unique_ptr<ThreadPool> pool;  // null: the host's
  std::vector<ArgumentSlot> slots;
  PlanCache plans;
  std::vector<std::byte*> inputs, states;  // addresses for the program
  std::vector<GrowingBlock> copies;        // of inputs that are not dense, one per input
  std::vector<Tensor> owned;               // states of the context, one per state; without data until needed
  Transfers outputs, updates;  // what the caller wants on the host: outputs, and states that are arguments
  uint64_t states_version = 1;
  std::vector<GrowingBlock> arenas;
  GrowingBlock working_memory;                                     // of routines
  GrowingBlock weight_ring;                                        // on the device
  std::shared_ptr<const WeightSet> in_use;                         // by what is enqueued on devices
  std::vector<std::shared_ptr<const WeightSet>> recorded_weights;  // by what callers have recorded
  uint64_t recorded = 0;                                           // spans of all queues
  std::vector<std::unique_ptr<Queue>> queues;                      // one per backend of the engine
  bool reads_host = false;                 // devices may read the caller's host memory
  std::unique_ptr<StepProfile> profile;    // null: nothing is timed
  const StepObserver* observer = nullptr;  // null: nobody looks
  bool has_many_shapes = false;            // and the log has been told
  BoundGroups groups;
  bool has_unopened_groups = false;     // on a device
  bool has_unpublished_memory = false;  // since something was planned or bound
  size_t published_working_memory = 0;  // bytes

  // Arenas and scratch grow in the first run of a plan, working memory also with data.
  bool may_have_grown() const {
    return has_unpublished_memory || published_working_memory != working_memory.bytes();
  }

  const MemoryAllocator* memory_source() const { return allocator ? &*allocator : nullptr; }
  void set_state(size_t index, std::byte* data) {
    if (states[index] == data) return;
    states[index] = data;
    ++states_version;
  }
};

namespace {

// Where the values of a port lie; null: on the host.
DeviceMemory* memory_of(const Engine& engine, const Port& port) {
  const Place place = engine.data().main.buffers[port.buffer].place;
  return engine.backends().memories[place_number(place)];
}

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
    : engine_(std::move(engine)), state_(std::make_unique<State>()) {
  engine_->require_unchanged();
  state_->counters = engine_->counters().claim();
  if (options.threads > 0) state_->pool = engine_->host().make_pool(options.threads);
  state_->allocator = options.allocator;
  state_->groups = bind_groups(engine_->data(), options.groups);
  state_->has_unopened_groups =
      !state_->groups.groups.empty() && has_device_collectives(engine_->data().main);
  const GrowingBlock empty(state_->memory_source());
  state_->working_memory = empty;
  state_->arenas.assign((kMaxNesting + 1) * engine_->backends().memories.size(), empty);
  const EngineData& data = engine_->data();
  state_->slots = argument_slots(data);
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

RunPlan& Context::plan_for(std::span<const Argument> inputs) {
  check_arguments(state_->slots, inputs);
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
  std::vector<int64_t> symbols = bind_sizes(engine_->data(), *main.dims, state_->slots, inputs);
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

void Context::run(std::span<const Argument> inputs, const OutputAllocator& allocator,
                  const RunOptions& options) {
  const RunLimits& limits = options.limits;
  RunPlan& plan = plan_for(inputs);
  place_arguments(inputs);
  engine_->require_verified_weights();
  const std::shared_ptr<const WeightSet> weights = engine_->weights();
  require_weights(*weights);
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
  open_device_groups(state_->groups, queue, [&](const std::string& line) {
    if (log.wants(LogLevel::kWarning)) log.write(LogLevel::kWarning, line);
  });
  state_->has_unopened_groups = false;
}

// A block of the size that the weights need; what an earlier one took is free before it is allocated.
std::byte* Context::place_weight_ring(const WeightSet& weights) {
  const size_t bytes = weights.plan != nullptr ? weights.plan->ring : 0;
  if (bytes + state_->weight_ring.bytes() == 0 || state_->in_use.get() == &weights) [[likely]]
    return state_->weight_ring.reserve(0);
  synchronize();
  state_->in_use = nullptr;
  if (bytes != state_->weight_ring.bytes() && state_->recorded == 0) state_->weight_ring = GrowingBlock();
  return bytes == 0 ? nullptr : state_->weight_ring.reserve(bytes, engine_->backends().memories[1]);
}

// What is enqueued needs its weights until it is done; what the caller wants on the host has to be there.
void Context::finish(const std::shared_ptr<const WeightSet>& weights, bool may_return_early) {
  const bool changed = state_->in_use != nullptr && state_->in_use != weights;
  if (!may_return_early || state_->reads_host || state_->updates.pending() || changed) synchronize();
  state_->in_use = weights;
  state_->outputs.finish();
  state_->updates.finish();
  keep_recorded(weights);
}

// What a caller has recorded, in a CUDA graph, uses the memory of this run whenever it is repeated.
void Context::keep_recorded(const std::shared_ptr<const WeightSet>& weights) {
  uint64_t recorded = 0;
  for (const auto& queue : state_->queues) recorded += queue->recorded();
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

// After a failure: what was enqueued uses memory that the caller is about to release.
void Context::abandon() const noexcept {
  for (const auto& queue : state_->queues) {
    try {
      queue->wait();
    } catch (...) {  // the first failure is the one that is reported
    }
  }
}

void Context::synchronize() const {
  for (const auto& queue : state_->queues) wait_for(engine_->data(), engine_->data().main, *queue);
}

void Context::set_profiling(bool on) { state_->profile = on ? std::make_unique<StepProfile>() : nullptr; }

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
  const RunPlan& plan = plan_for(inputs);
  const Executable& main = engine_->main();
  std::vector<std::vector<int64_t>> shapes;
  for (const Port& output : main.program->outputs) {
    std::vector<int64_t>& shape = shapes.emplace_back();
    for (const DimSlot slot : main.buffers[output.buffer].shape) {
      shape.push_back(main.dims->is_data_dependent(slot) ? -1 : plan.values[slot]);
    }
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
