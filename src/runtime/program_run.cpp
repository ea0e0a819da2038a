// SPDX-License-Identifier: Apache-2.0
#include "runtime/program_run.h"

#include <fmt/core.h>

#include "runtime/device_collectives.h"
#include "runtime/loop_counters.h"
#include "runtime/prefetches.h"
#include "runtime/program_addresses.h"
#include "runtime/routine_run.h"
#include "runtime/step_errors.h"
#include "runtime/transfers.h"
#include "runtime/waits.h"
#include "runtime/weight_plan.h"
#include "support/error.h"

namespace ingot::core {
namespace {

// One program: the main one (level 0) or a nested one.
class ProgramRun {
 public:
  ProgramRun(const RunResources& resources, RunPlan& plan, const Executable& executable, Frame& frame,
             const Ports& ports, size_t level)
      : resources_(resources),
        plan_(plan),
        executable_(executable),
        program_(*executable.program),
        frame_(frame),
        addresses_(resources, plan, executable, frame, ports, level),
        level_(level) {}

  void run();

 private:
  bool identify();
  bool repeat();
  std::span<const Prefetch> prefetches_of(const ExecutableSpan& span);
  DeviceMemory* memory_of(BufferId id) const {
    return resources_.backends.memories[place_number(program_.buffers[id].place)];
  }
  void run_span(const ExecutableSpan& span);
  void run_watched(const ExecutableSpan& span);
  void run_named(const ExecutableSpan& step);
  void run_calls(const ExecutableSpan& span);
  void run_in_parts(const ExecutableSpan& span);
  void run_beside_devices(const ExecutableSpan& span);
  bool time_on_device(const ExecutableSpan& span);
  CallSpan calls_of(const ExecutableSpan& span);
  void run_on_host(size_t index);
  void run_branch(const ExecutableStep& step, const BranchStep& branch);
  void run_loop(const ExecutableStep& step, const LoopStep& loop);
  template <typename T>
  T read_argument(BufferId id) const {
    return read_scalar<T>(frame_.pointers[id], memory_of(id));
  }
  void run_nested(uint32_t id, const Ports& ports);
  void check_all() const;
  void bind_results(const ExecutableStep& step);

  const RunResources& resources_;
  RunPlan& plan_;
  const Executable& executable_;
  const Program& program_;
  Frame& frame_;
  ProgramAddresses addresses_;
  const size_t level_;
};

void ProgramRun::run() {
  for (const SymbolSlot symbol : executable_.binds) plan_.bound[symbol] = false;
  if (executable_.data_dependent) [[unlikely]]
    check_all();
  const bool is_watched = resources_.profile != nullptr || resources_.observer != nullptr ||
                          resources_.limits != nullptr || resources_.names_ranges;
  addresses_.resolve_moving();
  frame_.identity.clear();
  if (!is_watched && identify() && repeat()) return;
  addresses_.resolve();
  for (const ExecutableSpan& span : executable_.spans) {
    for (size_t i = span.first; i < span.last; ++i) {
      if (executable_.steps[i].data_dependent) evaluate_step(executable_, plan_, frame_, i);
    }
    if (is_watched) [[unlikely]]
      run_watched(span);
    else
      run_span(span);
    const ExecutableStep& last = executable_.steps[span.last - 1];
    if (!last.binds.empty()) [[unlikely]]
      bind_results(last);
  }
}

// What the program's one span on a device follows from, in the frame's identity; false if it may be anything
// else too.
bool ProgramRun::identify() {
  const bool is_known = !resources_.data.devices.empty() && plan_.number != 0 && level_ == 0 &&
                        executable_.spans.size() == 1 && executable_.spans[0].backend != kNoId &&
                        !executable_.data_dependent && resources_.weights.plan == nullptr;
  if (!is_known) return false;
  std::vector<uint64_t>& words = frame_.identity;
  const auto add = [&](const void* address) { words.push_back(reinterpret_cast<uintptr_t>(address)); };
  words.insert(words.end(), {plan_.number, resources_.weights.generation});
  for (const std::byte* arena : frame_.arenas) add(arena);
  for (const std::byte* state : resources_.states) add(state);
  for (const uint32_t i : executable_.moving_arguments) add(frame_.arguments[i]);
  return true;
}

bool ProgramRun::repeat() {
  return resources_.queues[executable_.spans[0].backend]->repeat(frame_.identity, resources_.stream);
}

std::span<const Prefetch> ProgramRun::prefetches_of(const ExecutableSpan& span) {
  const WeightPlan* plan = weight_plan_of(resources_, program_);
  if (plan == nullptr) return {};
  list_prefetches(*plan, resources_.weights, resources_.weight_ring, span, frame_.prefetches);
  return frame_.prefetches;
}

void ProgramRun::run_span(const ExecutableSpan& span) {
  if (span.backend == kNoId)
    run_on_host(span.first);
  else if (span.waits)
    run_beside_devices(span);
  else if (!executable_.has_device_collectives || resolve_collectives(resources_, executable_, frame_, span))
    run_calls(span);
  else
    run_in_parts(span);
}

// What the calls read was copied from devices, and what they write may be copied there still.
void ProgramRun::run_beside_devices(const ExecutableSpan& span) {
  follow_live(resources_);
  wait_for_devices(resources_);
  run_calls(span);
}

// Collectives that the device cannot do go over the host. To repeat one part would leave out the others.
void ProgramRun::run_in_parts(const ExecutableSpan& span) {
  frame_.identity.clear();
  const auto is_on_host = [&](uint32_t i) {
    return frame_.device_steps[i].is_known && frame_.device_steps[i].is_on_host;
  };
  for (uint32_t i = span.first; i < span.last;) {
    uint32_t end = i;
    while (end < span.last && !is_on_host(end)) ++end;
    if (end > i) run_calls({i, end, span.backend, span.moves, span.waits});
    if (end < span.last) {
      follow_live(resources_);
      wait_for_devices(resources_);
      run_collective_on_host(resources_, executable_, frame_, end++);
    }
    i = end;
  }
}

void ProgramRun::run_named(const ExecutableSpan& step) {
  if (!resources_.names_ranges || step.backend == kNoId) return run_span(step);
  struct Range {
    const Executor& executor;
    ~Range() { executor.end_range(); }
  } range{*resources_.backends.all[step.backend].executor};
  range.executor.begin_range(program_.steps[step.first].name.c_str());
  run_span(step);
}

// Step by step; if timed or observed, waits for each step to finish.
void ProgramRun::run_watched(const ExecutableSpan& span) {
  const bool is_timed = resources_.profile != nullptr && level_ == 0;
  const bool is_observed = resources_.observer != nullptr && level_ == 0;
  const bool is_only_timed =
      is_timed && !is_observed && resources_.limits == nullptr && !resources_.names_ranges;
  if (is_only_timed && span.backend != kNoId && !span.waits && time_on_device(span)) return;
  for (uint32_t i = span.first; i < span.last; ++i) {
    if (resources_.limits != nullptr) require_within(*resources_.limits);
    const auto start = StepProfile::Clock::now();
    run_named({i, i + 1, span.backend, span.moves, span.waits});
    if (!is_timed && !is_observed) continue;
    if (span.backend != kNoId)
      wait_for(resources_.data, resources_.program, *resources_.queues[span.backend]);
    else
      wait_for_devices(resources_);
    if (is_timed) resources_.profile->add(i, start, StepProfile::Clock::now());
    if (is_observed) show_results(*resources_.observer, executable_, plan_, i, resources_.backends);
  }
}

// By the device's own clock, all calls of a span together.
bool ProgramRun::time_on_device(const ExecutableSpan& span) {
  Queue& queue = *resources_.queues[span.backend];
  std::vector<int64_t> nanoseconds(span.last - span.first);
  if (executable_.has_device_collectives && !resolve_collectives(resources_, executable_, frame_, span))
    return false;
  const auto start = StepProfile::Clock::now();
  if (!queue.time(calls_of(span), nanoseconds)) return false;
  wait_for(resources_.data, resources_.program, queue);
  resources_.profile->add(span.first, start, nanoseconds);
  return true;
}

CallSpan ProgramRun::calls_of(const ExecutableSpan& span) {
  return {.images = resources_.backends.all[span.backend].images.get(),
          .calls = std::span(frame_.calls).subspan(span.first, span.last - span.first),
          .pool = &resources_.pool,
          .stream = resources_.stream,
          .moves = span.moves,
          .prefetches = prefetches_of(span),
          .one_by_one = resources_.names_ranges || !resources_.uses_graphs,
          .identity = frame_.identity};
}

void ProgramRun::run_calls(const ExecutableSpan& span) {
  const auto failure = resources_.queues[span.backend]->run(calls_of(span));
  if (failure) [[unlikely]]
    fail_launch(resources_.data, resources_.program, *failure);
}

void ProgramRun::run_on_host(size_t index) {
  const ExecutableStep& step = executable_.steps[index];
  if (!resources_.data.devices.empty()) {
    follow_live(resources_);
    wait_for_devices(resources_);
  }
  if (step.step->as<RoutineStep>() != nullptr) return run_routine(resources_, executable_, frame_, index);
  if (const auto* branch = step.step->as<BranchStep>()) return run_branch(step, *branch);
  if (const auto* loop = step.step->as<LoopStep>()) return run_loop(step, *loop);
  invariant(step.step->as<CopyStep>() != nullptr, "a kernel step has no backend");
  copy_on_host(frame_.calls[index]);
}

void ProgramRun::run_nested(uint32_t id, const Ports& ports) {
  ProgramRun(resources_, plan_, executable_.nested[id], frame_.nested[id], ports, level_ + 1).run();
}

void ProgramRun::run_branch(const ExecutableStep& step, const BranchStep& branch) {
  const auto pointer = [&](size_t use) {
    return frame_.pointers[executable_.arguments[step.first_argument + use]];
  };
  const auto condition = read_argument<uint8_t>(executable_.arguments[step.first_argument]);
  const uint32_t id = condition != 0 ? branch.then : branch.otherwise;
  std::vector<std::byte*> ports;
  for (size_t i = 1; i < step.argument_count; ++i) ports.push_back(pointer(i));
  const std::span all(ports);
  const size_t inputs = executable_.nested[id].program->inputs.size();
  run_nested(id, {all.first(inputs), all.subspan(inputs)});
}

// On a device the host waits for each iteration's condition.
void ProgramRun::run_loop(const ExecutableStep& step, const LoopStep& loop) {
  const Executable& body = executable_.nested[loop.body];
  const BufferId* uses = executable_.arguments.data() + step.first_argument;
  const size_t carried = body.program->outputs.size() - 1, inputs = body.program->inputs.size() - 1;
  const int64_t trips = uses[0] == kNoId ? INT64_MAX : read_argument<int64_t>(uses[0]);
  DeviceMemory* const memory =
      resources_.backends.memories[place_number(body.program->buffers[body.program->inputs[0].buffer].place)];
  const size_t blocks = frame_.blocks.size() - carried;  // one more is before them
  LoopCounters counters(frame_.blocks[blocks - 1], memory,
                        uses[1] == kNoId || read_argument<uint8_t>(uses[1]) != 0);
  CarriedValues values{.memory = memory, .reads = {counters.iteration()}, .writes = {counters.condition()}};
  for (size_t i = 0; i < inputs; ++i) values.reads.push_back(frame_.pointers[uses[2 + i]]);
  for (size_t i = 0; i < carried; ++i) {
    const auto bytes = static_cast<size_t>(plan_.values[executable_.buffers[uses[2 + i]].bytes]);
    values.add(frame_.pointers[uses[2 + inputs + i]], frame_.blocks[blocks + i].reserve(bytes, memory),
               bytes);
  }
  for (int64_t iteration = 0; iteration < trips && counters.goes_on(); ++iteration) {
    counters.begin(iteration);
    run_nested(loop.body, {values.reads, values.writes});
    if (memory != nullptr) wait_for_devices(resources_);
    counters.end();
    values.alternate();
  }
  values.finish();
}

void ProgramRun::bind_results(const ExecutableStep& step) {
  for (const ExecutableBinding& binding : step.binds) {
    const auto value = read_scalar<int64_t>(frame_.pointers[binding.buffer]);
    if (value < binding.least || value > plan_.values[binding.limit]) {
      fail_value(resources_.data, *step.step,
                 fmt::format("computed the size {}, outside of {}..{}", value, binding.least,
                             plan_.values[binding.limit]));
    }
    bind_symbol(*executable_.dims, plan_, binding.symbol, value);
    executable_.conditions.require_late(plan_.symbols, plan_.bound, binding.symbol);
  }
  check_all();
  addresses_.resolve_sized();
}

void ProgramRun::check_all() const {
  for (BufferId id = 0; id < executable_.buffers.size(); ++id) check_fit(executable_, plan_, id);
}

}  // namespace

void run_main(const RunResources& resources, const Executable& executable, RunPlan& plan) {
  ProgramRun(resources, plan, executable, plan.frame, {resources.inputs, {}}, 0).run();
}

}  // namespace ingot::core
