// SPDX-License-Identifier: Apache-2.0
#include "engine/program.h"

#include <algorithm>

#include "support/error.h"

namespace ingot::core {
std::optional<uint32_t> Buffer::weight() const {
  if (const auto* weight = as<WeightStorage>()) return weight->id;
  if (const auto* constant = as<ConstantStorage>()) return constant->id;
  return std::nullopt;
}

std::vector<uint32_t> Step::nested() const {
  if (const auto* branch = as<BranchStep>()) return {branch->then, branch->otherwise};
  if (const auto* loop = as<LoopStep>()) return {loop->body};
  return {};
}

BufferId root_buffer(const Program& program, BufferId id) {
  while (const auto* alias = program.buffers[id].as<AliasStorage>()) id = alias->of;
  return id;
}

bool has_its_next(const Program& program, size_t step) {
  const auto* routine = program.steps[step].as<RoutineStep>();
  if (routine == nullptr || routine->with_next == kNoId) return true;
  const bool has_kernel =
      step + 1 < program.steps.size() && program.steps[step + 1].as<KernelStep>() != nullptr;
  if (!has_kernel || routine->image == kNoId) return false;
  const auto reads_result = [&](const BufferUse& use) {
    return use.reads && use.buffer != kNoId &&
           std::ranges::any_of(program.steps[step].uses, [&](const BufferUse& own) {
             return own.writes && root_buffer(program, own.buffer) == root_buffer(program, use.buffer);
           });
  };
  return std::ranges::any_of(program.steps[step + 1].uses, reads_result);
}

int64_t place_arena(const Program& program, Place place, std::span<const int64_t> sizes,
                    std::span<int64_t> offsets) {
  int64_t total = 0;
  for (size_t id = 0; id < program.buffers.size(); ++id) {
    const Buffer& buffer = program.buffers[id];
    const auto* arena = buffer.as<ArenaStorage>();
    if (arena == nullptr || buffer.place != place) continue;
    int64_t offset = 0;
    for (const BufferId lower : arena->above) offset = std::max(offset, offsets[lower] + sizes[lower]);
    offsets[id] = offset;
    int64_t end = 0;
    if (sizes[id] < 0 || __builtin_add_overflow(offset, sizes[id], &end)) {
      throw UserError("INGOT-U101", "the sizes of a memory plan overflow 64 bits", "use smaller shapes");
    }
    total = std::max(total, end);
  }
  return total;
}

TensorType type_for_callers(TensorType type, bool is_complex) {
  if (!is_complex) return type;
  type.dtype = complex_of(type.dtype);
  type.shape.pop_back();
  return type;
}

}  // namespace ingot::core
