// SPDX-License-Identifier: Apache-2.0
// Small programs for tests.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "engine/program.h"

namespace ingot::core::testing {

inline TensorType f32(Shape shape) { return {DType::kF32, std::move(shape), {}}; }

// Gives arena buffers their sizes.
inline BufferId add_buffer(Program& program, std::string name, TensorType type, Storage storage) {
  Buffer buffer{.name = std::move(name), .type = std::move(type), .storage = std::move(storage)};
  if (auto* arena = buffer.as<ArenaStorage>())
    arena->bytes = ceil_divide(storage_bytes(buffer.type), 64) * Dim(64);
  program.buffers.push_back(std::move(buffer));
  return static_cast<BufferId>(program.buffers.size() - 1);
}

inline BufferId add_input(Program& program, std::string name, TensorType type) {
  const auto index = static_cast<uint32_t>(program.inputs.size());
  const BufferId id = add_buffer(program, name, type, InputStorage{index});
  program.inputs.push_back({std::move(name), std::move(type), id});
  return id;
}

inline BufferId add_output(Program& program, std::string name, TensorType type) {
  const auto index = static_cast<uint32_t>(program.outputs.size());
  const BufferId id = add_buffer(program, name, type, OutputStorage{index});
  program.outputs.push_back({std::move(name), std::move(type), id});
  return id;
}

inline Step copy_step(BufferId from, BufferId to) {
  return {.name = "copy", .action = CopyStep{}, .uses = {{from, true, false}, {to, false, true}}};
}

inline Step kernel_step(std::string name, std::vector<BufferId> reads, std::vector<BufferId> writes) {
  Step step{.name = std::move(name), .action = KernelStep{"null", {.image = 0}}};
  for (const BufferId id : reads) step.uses.push_back({id, true, false});
  for (const BufferId id : writes) step.uses.push_back({id, false, true});
  return step;
}

// x: f32[B, S] -> y = f32[B, S] through two buffers in the arena.
inline Program chain() {
  Program program{.name = "main"};
  program.symbols = {{"B", {.range = {1, 16}, .typical = 4}}, {"S", {.range = {1, 256}, .typical = 128}}};
  const TensorType type = f32({Dim::symbol("B"), Dim::symbol("S")});
  const BufferId x = add_input(program, "x", type);
  const BufferId a = add_buffer(program, "a", type, ArenaStorage{});
  const BufferId b = add_buffer(program, "b", type, ArenaStorage{});
  program.buffers[b].as<ArenaStorage>()->above = {a};
  const BufferId y = add_output(program, "y", type);
  program.steps = {copy_step(x, a), copy_step(a, b), copy_step(b, y)};
  return program;
}

}  // namespace ingot::core::testing
