// SPDX-License-Identifier: Apache-2.0
// The groups of ranks that an engine's collectives need, bound when a context is made.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/group_uses.h"
#include "routines/communicator.h"

namespace ingot::core {

// By name; a group named "" is for all names if the engine has one. Groups that are not given stay unbound:
// runs then fail (INGOT-U350). UserError INGOT-U351 if the engine is for another rank, U352 for another
// number of ranks.
BoundGroups bind_groups(const EngineData& data, const std::vector<BoundGroups::Bound>& given);

// UserError INGOT-U358 if the weights are the parts of another rank than that in one of the groups.
void check_parts(const ShardRanks& of_weights, const BoundGroups& groups);

// The entry of this rank. UserError INGOT-U350 if one of the groups is not bound.
int64_t size_on_rank(const RankSizes& table, const BoundGroups& groups);

// One run of a context, which has its groups to itself. UserError INGOT-U355 if another run uses one of them.
class GroupRun {
 public:
  explicit GroupRun(const BoundGroups& groups);
  GroupRun(const GroupRun&) = delete;
  GroupRun& operator=(const GroupRun&) = delete;
  ~GroupRun();
  // After a failure: other ranks wait for this one if it has begun an exchange, so the groups are ended.
  void leave(const std::string& text) const;

 private:
  uint64_t exchanges() const;

  std::vector<Communicator*> begun_;  // each once
  uint64_t exchanges_ = 0;            // before the run
};

}  // namespace ingot::core
