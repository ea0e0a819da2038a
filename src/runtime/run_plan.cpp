// SPDX-License-Identifier: Apache-2.0
#include "runtime/run_plan.h"

#include <algorithm>

#include <fmt/core.h>

#include "support/error.h"

namespace ingot::core {
namespace {

TensorView view_of(const Executable& executable, const RunPlan& plan, BufferId id) {
  Tensor tensor;
  if (id == kNoId) return {};
  tensor.dtype = executable.program->buffers[id].type.dtype;
  for (const DimSlot slot : executable.buffers[id].shape) tensor.shape.push_back(plan.values[slot]);
  return tensor.view();  // with strides; each run sets the address
}

size_t carried_values(const Step& step, const Program& program) {
  const auto* loop = step.as<LoopStep>();
  return loop == nullptr ? 0 : program.nested[loop->body].outputs.size();
}

void place_arenas(const Executable& executable, const std::vector<int64_t>& sizes, Frame& frame) {
  const size_t places = executable.places.empty() ? 1 : size_t{executable.places.back()} + 1;
  frame.arena_bytes.resize(places);
  frame.arenas.resize(places);
  for (const uint8_t place : executable.places)
    frame.arena_bytes[place] = place_arena(*executable.program, numbered_place(place), sizes, frame.offsets);
}

KernelCall make_call(const ExecutableStep& step, Frame& frame) {
  const auto* kernel = step.step->as<KernelStep>();
  const int64_t* values = frame.values.data() + step.first_value;
  return {.launch = kernel != nullptr ? &kernel->launch : nullptr,
          .buffers = std::span(frame.arguments).subspan(step.first_argument, step.argument_count),
          .symbols = values,
          .sizes = values + (kernel != nullptr ? kernel->launch.symbols.size() : 0)};
}

void check_copy(const Executable& executable, const RunPlan& plan, const ExecutableStep& step) {
  const auto bytes = [&](size_t use) {
    return plan.values[executable.buffers[step.step->uses[use].buffer].bytes];
  };
  if (bytes(0) == bytes(1)) return;
  throw UserError("INGOT-U311",
                  fmt::format("'{}' copies between buffers of different sizes", step.step->name));
}

Frame make_frame(const Executable& executable, RunPlan& plan) {
  Frame frame;
  const size_t count = executable.buffers.size();
  std::vector<int64_t> sizes(count);
  for (BufferId id = 0; id < count; ++id) {
    if (executable.program->buffers[id].as<ArenaStorage>() != nullptr)
      sizes[id] = plan.values[executable.buffers[id].capacity];
    check_fit(executable, plan, id);
  }
  frame.offsets.resize(count);
  frame.pointers.resize(count);
  place_arenas(executable, sizes, frame);
  frame.arguments.resize(executable.arguments.size());
  frame.values.resize(executable.values.size());
  frame.routines.resize(executable.steps.size());
  if (executable.has_device_collectives) frame.device_steps.resize(executable.steps.size());
  for (const ExecutableStep& step : executable.steps) frame.calls.push_back(make_call(step, frame));
  size_t blocks = executable.data_dependent_buffers.empty() ? 0 : count;
  for (size_t i = 0; i < executable.steps.size(); ++i) {
    const ExecutableStep& step = executable.steps[i];
    blocks += carried_values(*step.step, *executable.program);
    if (!step.data_dependent) evaluate_step(executable, plan, frame, i);
  }
  frame.blocks.resize(blocks);
  for (const Executable& nested : executable.nested) frame.nested.push_back(make_frame(nested, plan));
  return frame;
}

}  // namespace

bool is_known(const DimPool& dims, const RunPlan& plan, DimSlot slot) {
  return std::ranges::all_of(dims.data_dependent_symbols[slot],
                             [&](SymbolSlot symbol) { return plan.bound[symbol]; });
}

bool has_known_shape(const Executable& executable, const RunPlan& plan, BufferId id) {
  return std::ranges::all_of(executable.buffers[id].shape,
                             [&](DimSlot slot) { return is_known(*executable.dims, plan, slot); });
}

void check_fit(const Executable& executable, const RunPlan& plan, BufferId id) {
  const ExecutableBuffer& buffer = executable.buffers[id];
  const DimPool& dims = *executable.dims;
  for (const DimSlot slot : {buffer.bytes, buffer.capacity, buffer.offset}) {
    if (!is_known(dims, plan, slot)) return;
  }
  const int64_t bytes = plan.values[buffer.bytes], offset = plan.values[buffer.offset];
  const int64_t capacity = plan.values[buffer.capacity];
  const bool positive =
      std::ranges::all_of(buffer.shape, [&](DimSlot slot) { return plan.values[slot] >= 0; });
  const bool fits = positive && bytes >= 0 && offset >= 0 && offset <= capacity && bytes <= capacity - offset;
  if (fits) [[likely]]
    return;
  const Buffer& declared = executable.program->buffers[id];
  throw UserError("INGOT-U206",
                  fmt::format("the engine's memory plan is broken: '{}' : {} needs {} bytes at {} of {}",
                              declared.name, to_string(declared.type), bytes, offset, capacity),
                  "rebuild the engine; if this version of Ingot built it, report a bug");
}

void evaluate_step(const Executable& executable, const RunPlan& plan, Frame& frame, size_t index) {
  const ExecutableStep& step = executable.steps[index];
  for (uint32_t i = step.first_value; i < step.first_value + step.value_count; ++i)
    frame.values[i] = plan.values[executable.values[i]];
  if (step.step->as<CopyStep>() != nullptr) check_copy(executable, plan, step);
  if (step.step->as<RoutineStep>() == nullptr) return;
  RoutineArguments& arguments = frame.routines[index];
  arguments = {};
  if (!frame.device_steps.empty()) frame.device_steps[index].is_known = false;
  for (const BufferUse& use : step.step->uses) {
    (use.writes ? arguments.outputs : arguments.inputs).push_back(view_of(executable, plan, use.buffer));
  }
}

void bind_symbol(const DimPool& dims, RunPlan& plan, SymbolSlot symbol, int64_t value) {
  plan.symbols[symbol] = value;
  plan.bound[symbol] = true;
  for (const DimSlot slot : dims.users[symbol]) {
    if (is_known(dims, plan, slot)) plan.values[slot] = dims.table.evaluate(slot, plan.symbols);
  }
}

RunPlan make_run_plan(const Executable& executable, std::vector<int64_t> key, std::vector<int64_t> symbols) {
  const DimPool& dims = *executable.dims;
  executable.conditions.require(symbols);
  RunPlan plan{.key = std::move(key), .symbols = std::move(symbols)};
  plan.bound.resize(plan.symbols.size());
  for (SymbolSlot symbol = 0; symbol < plan.bound.size(); ++symbol)
    plan.bound[symbol] = !dims.data_dependent[symbol];
  plan.values.resize(dims.table.size());
  for (DimSlot slot = 0; slot < plan.values.size(); ++slot) {
    if (!dims.is_data_dependent(slot)) plan.values[slot] = dims.table.evaluate(slot, plan.symbols);
  }
  plan.frame = make_frame(executable, plan);
  return plan;
}

}  // namespace ingot::core
