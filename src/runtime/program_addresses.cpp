// SPDX-License-Identifier: Apache-2.0
#include "runtime/program_addresses.h"

#include <fmt/core.h>

#include "runtime/prefetches.h"
#include "runtime/waits.h"
#include "support/error.h"

namespace ingot::core {

void ProgramAddresses::reserve_arenas() {
  const size_t places = resources_.backends.memories.size();
  if (resources_.arenas.size() < (level_ + 1) * places) resources_.arenas.resize((level_ + 1) * places);
  for (const uint8_t place : executable_.places) {
    GrowingBlock& block = resources_.arenas[level_ * places + place];
    const auto bytes = static_cast<size_t>(frame_.arena_bytes[place]);
    if (bytes > block.bytes()) wait_for_devices(resources_);
    frame_.arenas[place] = block.reserve(bytes, resources_.backends.memories[place]);
  }
}

bool ProgramAddresses::keeps_addresses() const {
  return frame_.known_arenas == frame_.arenas && frame_.weights == resources_.weights.generation &&
         frame_.states == resources_.states_version;
}

void ProgramAddresses::resolve_moving() {
  reserve_arenas();
  for (const BufferId id : executable_.moving) set_pointer(id);
  set_moving_arguments();
}

// Addresses in arenas, and of weights and states, are reused from run to run.
void ProgramAddresses::resolve() {
  if (keeps_addresses()) [[likely]]
    return;
  auto moving = executable_.moving.begin();
  for (BufferId id = 0; id < executable_.buffers.size(); ++id) {
    if (moving != executable_.moving.end() && *moving == id)
      ++moving;
    else
      set_pointer(id);
  }
  for (size_t i = 0; i < executable_.arguments.size(); ++i) {
    const BufferId id = executable_.arguments[i];
    frame_.arguments[i] = id == kNoId ? nullptr : frame_.pointers[id];
  }
  set_streamed_arguments();
  frame_.known_arenas = frame_.arenas;
  frame_.weights = resources_.weights.generation;
  frame_.states = resources_.states_version;
}

void ProgramAddresses::set_pointer(BufferId id) {
  const ExecutableBuffer& buffer = executable_.buffers[id];
  if (buffer.root == id) {
    frame_.pointers[id] = address(id);
  } else {
    std::byte* root = frame_.pointers[buffer.root];
    frame_.pointers[id] = root == nullptr ? nullptr : root + plan_.values[buffer.offset];
  }
}

void ProgramAddresses::set_moving_arguments() {
  for (const uint32_t i : executable_.moving_arguments)
    frame_.arguments[i] = frame_.pointers[executable_.arguments[i]];
  if (executable_.data_dependent) set_streamed_arguments();  // parts of weights may be among them
}

void ProgramAddresses::set_streamed_arguments() {
  if (const WeightPlan* plan = weight_plan_of(resources_, program_))
    set_fetched_arguments(*plan, resources_.weight_ring, executable_, plan_, frame_);
}

std::byte* ProgramAddresses::address(BufferId id) {
  return std::visit([&](const auto& storage) { return address(id, storage); }, program_.buffers[id].storage);
}

std::byte* ProgramAddresses::address(BufferId id, const OutputStorage& output) {
  if (level_ > 0) return ports_.outputs[output.index];
  return has_known_shape(executable_, plan_, id) ? allocate_output(id, output) : nullptr;
}

// Nothing writes weights: `validate` checked it.
std::byte* ProgramAddresses::address_of_weight(BufferId id, uint32_t weight) const {
  const uint8_t place = place_number(program_.buffers[id].place);
  const WeightPlan* plan = weight_plan_of(resources_, program_);
  if (plan != nullptr && place != 0 && !plan->read_there.empty() && plan->read_there[weight])
    return const_cast<std::byte*>(resources_.weights.pinned[weight].get());
  return const_cast<std::byte*>(resources_.weights.at(place)[weight].get());
}

std::byte* ProgramAddresses::address(BufferId id, const ArenaStorage&) const {
  return frame_.arenas[place_number(program_.buffers[id].place)] + frame_.offsets[id];
}

std::byte* ProgramAddresses::allocate_output(BufferId id, const OutputStorage& output) {
  constexpr size_t kShort = 8;
  const ExecutableBuffer& buffer = executable_.buffers[id];
  const size_t rank = buffer.shape.size();
  int64_t few[kShort];
  std::vector<int64_t> many(rank > kShort ? rank : 0);
  int64_t* shape = rank > kShort ? many.data() : few;
  for (size_t i = 0; i < rank; ++i) shape[i] = plan_.values[buffer.shape[i]];
  const auto bytes = static_cast<size_t>(plan_.values[buffer.bytes]);
  std::byte* memory = resources_.outputs.allocate(resources_.outputs.context, output.index,
                                                  program_.buffers[id].type.dtype, {shape, rank}, bytes);
  if (memory != nullptr || bytes == 0) return memory;
  throw DeviceError("INGOT-D302",
                    fmt::format("the caller's allocator returned no memory for output '{}' ({} bytes)",
                                program_.outputs[output.index].name, bytes));
}

std::byte* ProgramAddresses::allocate_data_dependent(BufferId id) {
  const DimSlot bytes = executable_.buffers[id].bytes;
  if (!has_known_shape(executable_, plan_, id)) return nullptr;
  const auto* output = program_.buffers[id].as<OutputStorage>();
  if (output != nullptr && level_ == 0) return allocate_output(id, *output);
  GrowingBlock& block = frame_.blocks[id];
  const auto needed = static_cast<size_t>(plan_.values[bytes]);
  if (needed > block.bytes()) wait_for_devices(resources_);
  return block.reserve(needed, resources_.backends.memories[place_number(program_.buffers[id].place)]);
}

// After sizes that follow from data are known.
void ProgramAddresses::resolve_sized() {
  for (const BufferId id : executable_.data_dependent_buffers) {
    if (frame_.pointers[id] == nullptr) frame_.pointers[id] = allocate_data_dependent(id);
  }
  for (const BufferId id : executable_.moving)
    if (executable_.buffers[id].root != id) set_pointer(id);
  set_moving_arguments();
}

}  // namespace ingot::core
