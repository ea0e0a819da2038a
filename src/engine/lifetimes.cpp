// SPDX-License-Identifier: Apache-2.0
#include "engine/lifetimes.h"

#include <algorithm>
#include <array>

namespace ingot::core {
namespace {

constexpr size_t kChunk = 512;  // buffers whose ancestors are tracked at once
using Ancestors = std::array<uint64_t, kChunk / 64>;

bool contains(const Ancestors& set, size_t index) { return (set[index / 64] >> (index % 64)) & 1; }

// Which buffers of arena[begin, begin + kChunk) are below each arena buffer, by a chain of relations.
std::vector<Ancestors> find_ancestors(const Program& program, const std::vector<BufferId>& arena,
                                      const std::vector<uint32_t>& position, size_t begin) {
  std::vector<Ancestors> below(arena.size() - begin);
  for (size_t i = begin; i < arena.size(); ++i) {
    Ancestors& own = below[i - begin];
    for (const BufferId lower : program.buffers[arena[i]].as<ArenaStorage>()->above) {
      const size_t at = position[lower];
      if (at < begin) continue;
      const Ancestors& others = below[at - begin];
      for (size_t word = 0; word < own.size(); ++word) own[word] |= others[word];
      if (at < begin + kChunk) own[(at - begin) / 64] |= uint64_t{1} << ((at - begin) % 64);
    }
  }
  return below;
}

}  // namespace

std::vector<Lifetime> lifetimes(const Program& program) {
  std::vector<Lifetime> lives(program.buffers.size());
  for (size_t s = 0; s < program.steps.size(); ++s) {
    const auto step = static_cast<int32_t>(s);
    const auto touch = [&](BufferId buffer) {
      if (buffer == kNoId) return;
      Lifetime& life = lives[root_buffer(program, buffer)];
      if (life.first < 0) life.first = step;
      life.last = step;
    };
    for (const BufferUse& use : program.steps[s].uses) touch(use.buffer);
    const auto* routine = program.steps[s].as<RoutineStep>();
    const bool is_with_next = routine != nullptr && routine->with_next != kNoId;
    for (const BufferUse& use : program.steps[s].uses)
      if (is_with_next && use.buffer != kNoId) lives[root_buffer(program, use.buffer)].last = step + 1;
    for (const SymbolBinding& binding : program.steps[s].binds) touch(binding.buffer);
  }
  for (BufferId id = 0; id < lives.size(); ++id) lives[id] = lives[root_buffer(program, id)];
  return lives;
}

std::optional<std::pair<BufferId, BufferId>> find_unordered(const Program& program,
                                                            const std::vector<Lifetime>& lives) {
  std::vector<BufferId> arena;
  std::vector<uint32_t> position(program.buffers.size(), kNoId);
  for (BufferId id = 0; id < program.buffers.size(); ++id) {
    if (program.buffers[id].as<ArenaStorage>() == nullptr) continue;
    position[id] = static_cast<uint32_t>(arena.size());
    arena.push_back(id);
  }
  for (size_t begin = 0; begin < arena.size(); begin += kChunk) {
    const std::vector<Ancestors> below = find_ancestors(program, arena, position, begin);
    const size_t end = std::min(begin + kChunk, arena.size());
    for (size_t upper = begin + 1; upper < arena.size(); ++upper) {
      const Buffer& buffer = program.buffers[arena[upper]];
      for (size_t lower = begin; lower < std::min(end, upper); ++lower) {
        const bool together = lives[arena[lower]].meets(lives[arena[upper]]);
        if (!together || contains(below[upper - begin], lower - begin)) continue;
        if (program.buffers[arena[lower]].place == buffer.place) return std::pair{arena[lower], arena[upper]};
      }
    }
  }
  return std::nullopt;
}

}  // namespace ingot::core
