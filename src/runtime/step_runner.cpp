// SPDX-License-Identifier: Apache-2.0
#include "runtime/step_runner.h"

#include <cstring>

#include <fmt/core.h>

#include "runtime/step_errors.h"
#include "support/error.h"

namespace ingot::core {
namespace {

int64_t read_scalar(const std::byte* data) {
  int64_t value;
  std::memcpy(&value, data, sizeof(value));
  return value;
}

}  // namespace

void StepRunner::run(const Executable& executable) {
  const size_t scratch =
      static_cast<size_t>(plan_.scratch_bytes) * static_cast<size_t>(resources_.pool.threads());
  resources_.scratch.reserve(scratch);
  run_program(executable, plan_.frame, {resources_.inputs, {}, true}, 0);
}

void StepRunner::run_program(const Executable& executable, Frame& frame, const Ports& ports, size_t level) {
  for (const SymbolSlot symbol : executable.binds) plan_.bound[symbol] = false;
  if (executable.late) [[unlikely]]
    check_all(executable);
  resolve(executable, frame, ports, level);
  const bool is_watched = resources_.profile != nullptr || resources_.limits != nullptr;
  for (size_t i = 0; i < executable.steps.size(); ++i) {
    const ExecutableStep& step = executable.steps[i];
    if (step.late) evaluate_step(executable, plan_, frame, i);
    if (is_watched) [[unlikely]]
      run_watched_step(executable, frame, i, level);
    else
      run_step(executable, frame, i, level);
    if (!step.binds.empty()) [[unlikely]]
      bind_results(executable, frame, ports, step);
  }
}

// Addresses in the arena, of weights and of states stay from run to run; the others are looked up again.
void StepRunner::resolve(const Executable& executable, Frame& frame, const Ports& ports, size_t level) {
  if (resources_.arenas.size() <= level) resources_.arenas.resize(level + 1);
  std::byte* arena = resources_.arenas[level].reserve(static_cast<size_t>(frame.arena_bytes));
  const bool same = frame.arena == arena && frame.weights == resources_.weights.generation &&
                    frame.states == resources_.states_version;
  const auto set = [&](BufferId id) {
    const ExecutableBuffer& buffer = executable.buffers[id];
    if (buffer.root == id) {
      frame.pointers[id] = address(executable, frame, ports, id);
    } else {
      std::byte* root = frame.pointers[buffer.root];
      frame.pointers[id] = root == nullptr ? nullptr : root + plan_.values[buffer.offset];
    }
  };
  if (same) [[likely]] {
    for (const BufferId id : executable.moving) set(id);
    return;
  }
  frame.arena = arena;
  for (BufferId id = 0; id < executable.buffers.size(); ++id) set(id);
  frame.weights = resources_.weights.generation;
  frame.states = resources_.states_version;
}

std::byte* StepRunner::address(const Executable& executable, Frame& frame, const Ports& ports, BufferId id) {
  const Buffer& buffer = executable.program->buffers[id];
  switch (buffer.storage) {
    case Storage::kInput:
      return ports.inputs[buffer.index];
    case Storage::kOutput:
      if (!ports.main) return ports.outputs[buffer.index];
      return is_known(*executable.dims, plan_, executable.buffers[id].bytes) ? allocate_output(executable, id)
                                                                             : nullptr;
    case Storage::kWeight:
    case Storage::kConstant:
      // Nothing writes weights: `validate` saw to it.
      return const_cast<std::byte*>(resources_.weights.data[buffer.index].get());
    case Storage::kState:
      return resources_.states[buffer.index];
    case Storage::kArena:
      return frame.arena + frame.offsets[id];
    case Storage::kDynamic:  // of a size that a step outside of a nested program told is known from the
                             // beginning
      return allocate_late(executable, frame, ports, id);
    case Storage::kAlias:
      break;
  }
  return nullptr;
}

std::byte* StepRunner::allocate_output(const Executable& executable, BufferId id) {
  constexpr size_t kShort = 8;
  const ExecutableBuffer& buffer = executable.buffers[id];
  const Buffer& declared = executable.program->buffers[id];
  const size_t rank = buffer.shape.size();
  int64_t few[kShort];
  std::vector<int64_t> many(rank > kShort ? rank : 0);
  int64_t* shape = rank > kShort ? many.data() : few;
  for (size_t i = 0; i < rank; ++i) shape[i] = plan_.values[buffer.shape[i]];
  const auto bytes = static_cast<size_t>(plan_.values[buffer.bytes]);
  std::byte* memory = resources_.outputs.allocate(resources_.outputs.context, declared.index,
                                                  declared.type.dtype, {shape, rank}, bytes);
  if (memory != nullptr || bytes == 0) return memory;
  throw DeviceError("INGOT-D302",
                    fmt::format("the caller's allocator gave no memory for output '{}' ({} bytes)",
                                executable.program->outputs[declared.index].name, bytes));
}

void StepRunner::run_watched_step(const Executable& executable, Frame& frame, size_t index, size_t level) {
  if (resources_.limits != nullptr) require_within(*resources_.limits);
  if (resources_.profile == nullptr || level > 0) return run_step(executable, frame, index, level);
  const auto start = StepProfile::Clock::now();
  run_step(executable, frame, index, level);
  resources_.profile->add(index, start, StepProfile::Clock::now());
}

void StepRunner::run_step(const Executable& executable, Frame& frame, size_t index, size_t level) {
  const ExecutableStep& step = executable.steps[index];
  switch (step.step->kind) {
    case StepKind::kKernel:
      return run_kernel(executable, frame, step);
    case StepKind::kRoutine:
      return run_routine(executable, frame, step, index);
    case StepKind::kCopy:
      return run_copy(executable, frame, step);
    case StepKind::kProgram:
      return step.step->control == ControlKind::kBranch ? run_branch(executable, frame, step, level)
                                                        : run_loop(executable, frame, step, level);
  }
}

void StepRunner::run_kernel(const Executable& executable, Frame& frame, const ExecutableStep& step) {
  void** arguments = resources_.arguments.data();
  const BufferId* ids = executable.arguments.data() + step.first_argument;
  for (uint32_t i = 0; i < step.argument_count; ++i) arguments[i] = frame.pointers[ids[i]];
  const KernelCall call{.image = step.step->image,
                        .buffers = arguments,
                        .symbols = frame.symbols.data() + step.first_symbol,
                        .work_items = plan_.values[step.work_items],
                        .grain = step.step->grain,
                        .item_cost = step.step->item_cost,
                        .scratch = resources_.scratch.reserve(0),
                        .scratch_stride = plan_.scratch_bytes};
  const int64_t status = step.executor->run(*step.images, call, resources_.pool);
  if (status != 0) [[unlikely]]
    fail_step(resources_.data, *step.step, status);
}

void StepRunner::run_routine(const Executable& executable, Frame& frame, const ExecutableStep& step,
                             size_t index) {
  RoutineArguments& arguments = frame.routines[index];
  size_t input = 0, output = 0;
  for (uint32_t i = 0; i < step.argument_count; ++i) {
    const BufferId id = executable.arguments[step.first_argument + i];
    TensorView& view = step.step->uses[i].writes ? arguments.outputs[output++] : arguments.inputs[input++];
    if (id != kNoId) view.data = frame.pointers[id];
  }
  try {
    step.routine->run({.inputs = arguments.inputs,
                       .outputs = arguments.outputs,
                       .attributes = step.step->attributes,
                       .pool = &resources_.pool});
  } catch (const UserError& error) {
    fail_routine(resources_.data, *step.step, error);
  }
}

void StepRunner::run_copy(const Executable& executable, Frame& frame, const ExecutableStep& step) {
  const BufferId from = executable.arguments[step.first_argument];
  const BufferId to = executable.arguments[step.first_argument + 1];
  const int64_t bytes = plan_.values[executable.buffers[from].bytes];
  if (bytes != plan_.values[executable.buffers[to].bytes])
    fail_value(resources_.data, *step.step, "copies between two sizes");
  if (bytes > 0) std::memmove(frame.pointers[to], frame.pointers[from], static_cast<size_t>(bytes));
}

void StepRunner::run_branch(const Executable& executable, Frame& frame, const ExecutableStep& step,
                            size_t level) {
  const auto pointer = [&](size_t use) {
    return frame.pointers[executable.arguments[step.first_argument + use]];
  };
  const uint32_t id = step.step->programs[pointer(0)[0] != std::byte{0} ? 0 : 1];
  const Executable& branch = executable.nested[id];
  std::vector<std::byte*> ports;
  for (size_t i = 1; i < step.argument_count; ++i) ports.push_back(pointer(i));
  const std::span all(ports);
  const size_t inputs = branch.program->inputs.size();
  run_program(branch, frame.nested[id], {all.first(inputs), all.subspan(inputs), false}, level + 1);
}

// Carried values go back and forth between the results and a second block, so that an iteration never writes
// what it reads.
void StepRunner::run_loop(const Executable& executable, Frame& frame, const ExecutableStep& step,
                          size_t level) {
  const uint32_t id = step.step->programs[0];
  const Executable& body = executable.nested[id];
  const BufferId* uses = executable.arguments.data() + step.first_argument;
  const size_t carried = body.program->outputs.size() - 1, inputs = body.program->inputs.size() - 1;
  const int64_t trips = uses[0] == kNoId ? INT64_MAX : read_scalar(frame.pointers[uses[0]]);
  std::byte go_on = uses[1] == kNoId ? std::byte{1} : frame.pointers[uses[1]][0];  // any byte but 0 is true
  int64_t iteration = 0;
  std::vector<std::byte*> reads = {reinterpret_cast<std::byte*>(&iteration)};
  for (size_t i = 0; i < inputs; ++i) reads.push_back(frame.pointers[uses[2 + i]]);
  std::vector<std::byte*> results, writes = {&go_on}, spare;
  const size_t blocks = frame.blocks.size() - carried;
  const auto bytes_of = [&](size_t i) {
    return static_cast<size_t>(plan_.values[executable.buffers[uses[2 + i]].bytes]);
  };
  for (size_t i = 0; i < carried; ++i) {
    results.push_back(frame.pointers[uses[2 + inputs + i]]);
    spare.push_back(frame.blocks[blocks + i].reserve(bytes_of(i)));
  }
  writes.insert(writes.end(), results.begin(), results.end());
  for (; iteration < trips && go_on != std::byte{0}; ++iteration) {
    const int64_t now = iteration;  // the body may not change the count
    run_program(body, frame.nested[id], {reads, writes, false}, level + 1);
    iteration = now;
    for (size_t i = 0; i < carried; ++i) {
      reads[1 + i] = writes[1 + i];
      writes[1 + i] = reads[1 + i] == results[i] ? spare[i] : results[i];
    }
  }
  for (size_t i = 0; i < carried; ++i) {
    if (reads[1 + i] != results[i] && bytes_of(i) > 0) std::memcpy(results[i], reads[1 + i], bytes_of(i));
  }
}

void StepRunner::bind_results(const Executable& executable, Frame& frame, const Ports& ports,
                              const ExecutableStep& step) {
  for (const ExecutableBinding& binding : step.binds) {
    const int64_t value = read_scalar(frame.pointers[binding.buffer]);
    if (value < 0 || value > plan_.values[binding.limit]) {
      fail_value(resources_.data, *step.step,
                 fmt::format("computed the size {}, outside of 0..{}", value, plan_.values[binding.limit]));
    }
    bind_symbol(*executable.dims, plan_, binding.symbol, value);
  }
  check_all(executable);
  for (const BufferId id : executable.late_buffers) {
    if (frame.pointers[id] == nullptr) frame.pointers[id] = allocate_late(executable, frame, ports, id);
  }
  for (const BufferId id : executable.moving) {
    const ExecutableBuffer& buffer = executable.buffers[id];
    std::byte* root = frame.pointers[buffer.root];
    if (buffer.root != id && root != nullptr) frame.pointers[id] = root + plan_.values[buffer.offset];
  }
}

void StepRunner::check_all(const Executable& executable) const {
  for (BufferId id = 0; id < executable.buffers.size(); ++id) check_fit(executable, plan_, id);
}

std::byte* StepRunner::allocate_late(const Executable& executable, Frame& frame, const Ports& ports,
                                     BufferId id) {
  const DimSlot bytes = executable.buffers[id].bytes;
  if (!is_known(*executable.dims, plan_, bytes)) return nullptr;
  if (executable.program->buffers[id].storage == Storage::kOutput && ports.main)
    return allocate_output(executable, id);
  return frame.blocks[id].reserve(static_cast<size_t>(plan_.values[bytes]));
}

}  // namespace ingot::core
