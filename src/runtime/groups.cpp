// SPDX-License-Identifier: Apache-2.0
#include "runtime/groups.h"

#include <algorithm>

#include <fmt/core.h>

#include "support/error.h"

namespace ingot::core {
namespace {

void check_group(const GroupUse& use, const Communicator& group) {
  if (use.ranks != 0 && use.ranks != group.size())
    throw UserError("INGOT-U352", fmt::format("group '{}' has {} ranks, the engine is for {}", use.name,
                                              group.size(), use.ranks));
  if (use.only_rank == -1 || use.only_rank == group.rank()) return;
  throw UserError(
      "INGOT-U351",
      fmt::format("the engine was built by rank {} of group '{}' and may differ from that of rank {}",
                  use.only_rank, use.name, group.rank()),
      "each rank loads the engine that it built; build with rank=\"any\" if all ranks have the same program "
      "and the weights are given when it is loaded");
}

}  // namespace

BoundGroups bind_groups(const EngineData& data, const std::vector<BoundGroups::Bound>& given) {
  BoundGroups bound;
  const std::vector<GroupUse> uses = groups_of(data);
  if (uses.empty()) return bound;
  for (const GroupUse& use : uses) {
    auto found = std::ranges::find(given, use.name, &BoundGroups::Bound::name);
    if (found == given.end() && uses.size() == 1)
      found = std::ranges::find(given, "", &BoundGroups::Bound::name);
    if (found == given.end()) continue;
    check_group(use, *found->group);
    bound.ranks.emplace(use.name, found->group->rank());
    if (use.has_collectives) bound.groups.push_back({use.name, found->group, false});
  }
  bound.program = collective_tag(data);
  return bound;
}

void check_parts(const ShardRanks& of_weights, const BoundGroups& groups) {
  for (const auto& [group, rank] : groups.ranks) {
    const auto part = of_weights.find(group);
    if (part == of_weights.end() || part->second == rank) continue;
    throw UserError("INGOT-U358",
                    fmt::format("the engine has the weights of rank {} of group '{}', and this is rank {}",
                                part->second, group, rank),
                    "give each rank the whole checkpoint, or its own part, when it loads the engine");
  }
}

int64_t size_on_rank(const RankSizes& table, const BoundGroups& groups) {
  size_t entry = 0;
  for (const RankAxis& axis : table.axes) {
    const auto rank = groups.ranks.find(axis.group);
    if (rank == groups.ranks.end() && axis.ranks != 1)
      throw UserError(
          "INGOT-U350",
          fmt::format("sizes depend on the rank, and no group of ranks is bound to '{}'", axis.group),
          "bind one when the context is made (docs/ranks.md)");
    const int64_t own = rank == groups.ranks.end() ? 0 : rank->second;
    if (own >= axis.ranks)
      throw UserError("INGOT-U352", fmt::format("group '{}' has a rank {}, the engine is for {} ranks",
                                                axis.group, own, axis.ranks));
    entry = entry * static_cast<size_t>(axis.ranks) + static_cast<size_t>(own);
  }
  return table.sizes[entry];
}

GroupRun::GroupRun(const BoundGroups& groups) {
  for (const auto& bound : groups.groups) {
    if (std::ranges::find(begun_, bound.group.get()) != begun_.end()) continue;
    if (!bound.group->begin_run()) {
      for (Communicator* group : begun_) group->end_run();
      throw UserError("INGOT-U355", fmt::format("another run is using group '{}'", bound.name),
                      "runs with collectives come one after another, in the same order on all ranks");
    }
    begun_.push_back(bound.group.get());
  }
  exchanges_ = exchanges();
}

GroupRun::~GroupRun() {
  for (Communicator* group : begun_) group->end_run();
}

uint64_t GroupRun::exchanges() const {
  uint64_t count = 0;
  for (const Communicator* group : begun_) count += group->exchanges() + group->device_work();
  return count;
}

void GroupRun::leave(const std::string& text) const {
  if (exchanges() == exchanges_) return;
  for (Communicator* group : begun_) group->leave(text);
}

}  // namespace ingot::core
