// SPDX-License-Identifier: Apache-2.0
#include "plan/arena_order.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "engine/lifetimes.h"
#include "plan/placement.h"

namespace ingot::core {
namespace {

using Ancestors = std::vector<uint64_t>;  // one bit per arena buffer

void add_ancestor(Ancestors& set, const Ancestors& others, size_t index) {
  for (size_t word = 0; word < set.size(); ++word) set[word] |= others[word];
  set[index / 64] |= uint64_t{1} << (index % 64);
}

bool contains(const Ancestors& set, size_t index) { return (set[index / 64] >> (index % 64)) & 1; }

// `bottom_up` are arena buffers by offset. Each is placed above the lower ones that are live at the same
// time, unless a chain already implies it.
void relate(Program& program, const std::vector<BufferId>& bottom_up, const std::vector<Lifetime>& lives) {
  std::vector<Ancestors> below(bottom_up.size(), Ancestors((bottom_up.size() + 63) / 64));
  for (size_t upper = 0; upper < bottom_up.size(); ++upper) {
    std::vector<BufferId>& above = program.buffers[bottom_up[upper]].as<ArenaStorage>()->above;
    for (size_t lower = upper; lower-- > 0;) {
      if (!lives[bottom_up[lower]].meets(lives[bottom_up[upper]]) || contains(below[upper], lower)) continue;
      above.push_back(bottom_up[lower]);
      add_ancestor(below[upper], below[lower], lower);
    }
    std::ranges::reverse(above);
  }
}

void renumber(Program& program, const std::vector<BufferId>& order) {
  std::vector<BufferId> new_ids(order.size());
  std::vector<Buffer> buffers;
  for (const BufferId old : order) {
    new_ids[old] = static_cast<BufferId>(buffers.size());
    buffers.push_back(std::move(program.buffers[old]));
  }
  const auto rename = [&](BufferId& id) { id = id == kNoId ? kNoId : new_ids[id]; };
  for (Buffer& buffer : buffers) {
    if (auto* alias = buffer.as<AliasStorage>()) rename(alias->of);
    auto* arena = buffer.as<ArenaStorage>();
    if (arena == nullptr) continue;
    for (BufferId& lower : arena->above) rename(lower);
    std::ranges::sort(arena->above);
  }
  program.buffers = std::move(buffers);
  for (auto* ports : {&program.inputs, &program.outputs, &program.states}) {
    for (Port& port : *ports) rename(port.buffer);
  }
  for (Step& step : program.steps) {
    for (BufferUse& use : step.uses) rename(use.buffer);
    for (SymbolBinding& binding : step.binds) rename(binding.buffer);
  }
}

// The arena buffers of one place, by their offsets at the typical sizes.
std::vector<BufferId> place_arena_of(Program& program, Place place, const std::vector<Lifetime>& lives,
                                     const SymbolValues& typical, PlanReport& report) {
  std::vector<BufferId> arena;
  std::vector<Block> blocks;
  for (BufferId id = 0; id < program.buffers.size(); ++id) {
    const auto* in_arena = program.buffers[id].as<ArenaStorage>();
    if (in_arena == nullptr || program.buffers[id].place != place) continue;
    arena.push_back(id);
    blocks.push_back({std::max<int64_t>(evaluate(in_arena->bytes, typical), 64), lives[id]});
  }
  const Placement placement = core::place(blocks);
  report.lower_bound += liveness_bound(blocks);
  report.arena += placement.total;
  std::vector<size_t> positions(arena.size());
  std::iota(positions.begin(), positions.end(), 0);
  std::ranges::stable_sort(positions, {}, [&](size_t i) { return placement.offsets[i]; });
  std::vector<BufferId> bottom_up;
  for (const size_t i : positions) bottom_up.push_back(arena[i]);
  return bottom_up;
}

}  // namespace

void order_arena(Program& program, const SymbolValues& typical, PlanReport& report) {
  const std::vector<Lifetime> lives = lifetimes(program);
  std::vector<BufferId> order, aliases;
  std::set<uint8_t> places;
  for (BufferId id = 0; id < program.buffers.size(); ++id) {
    const Buffer& buffer = program.buffers[id];
    if (buffer.as<ArenaStorage>() != nullptr)
      places.insert(place_number(buffer.place));
    else
      (buffer.as<AliasStorage>() != nullptr ? aliases : order).push_back(id);
  }
  report = {};
  for (const uint8_t place : places) {
    const auto bottom_up = place_arena_of(program, numbered_place(place), lives, typical, report);
    relate(program, bottom_up, lives);
    order.insert(order.end(), bottom_up.begin(), bottom_up.end());
  }
  order.insert(order.end(), aliases.begin(), aliases.end());
  renumber(program, order);
}

}  // namespace ingot::core
