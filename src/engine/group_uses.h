// SPDX-License-Identifier: Apache-2.0
// The groups of ranks that the collectives of an engine name.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/engine_data.h"

namespace ingot::core {

// What the collectives of one group have in common.
struct GroupUse {
  std::string name;
  int64_t ranks = 0;       // 0: any number
  int64_t only_rank = -1;  // the only one that may run the program; -1: any
};

std::vector<GroupUse> groups_of(const EngineData& data);  // by first use

// What must be the same on all ranks: the collectives in their order and, if no rank has a program of its
// own, the nodes of the model.
uint64_t collective_tag(const EngineData& data);

}  // namespace ingot::core
