// SPDX-License-Identifier: Apache-2.0
#include "plan/arena_order.h"

#include <algorithm>
#include <numeric>

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

}  // namespace

void order_arena(Program& program, const SymbolValues& typical, PlanReport& report) {
  const std::vector<Lifetime> lives = lifetimes(program);
  std::vector<BufferId> arena, others, aliases;
  std::vector<Block> blocks;
  for (BufferId id = 0; id < program.buffers.size(); ++id) {
    const Buffer& buffer = program.buffers[id];
    const auto* in_arena = buffer.as<ArenaStorage>();
    (in_arena != nullptr ? arena : buffer.as<AliasStorage>() != nullptr ? aliases : others).push_back(id);
    if (in_arena != nullptr)
      blocks.push_back({std::max<int64_t>(evaluate(in_arena->bytes, typical), 64), lives[id]});
  }
  const Placement placement = place(blocks);
  report = {liveness_bound(blocks), placement.total};

  std::vector<size_t> positions(arena.size());
  std::iota(positions.begin(), positions.end(), 0);
  std::ranges::stable_sort(positions, {}, [&](size_t i) { return placement.offsets[i]; });
  std::vector<BufferId> bottom_up;
  for (const size_t i : positions) bottom_up.push_back(arena[i]);
  relate(program, bottom_up, lives);

  std::vector<BufferId> order = std::move(others);
  order.insert(order.end(), bottom_up.begin(), bottom_up.end());
  order.insert(order.end(), aliases.begin(), aliases.end());
  renumber(program, order);
}

}  // namespace ingot::core
