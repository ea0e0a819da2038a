// SPDX-License-Identifier: Apache-2.0
// The groups of ranks that the collectives and sizes of an engine name.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine_data.h"

namespace ingot::core {

// What the uses of one group have in common.
struct GroupUse {
  std::string name;
  int64_t ranks = 0;            // 0: any number
  int64_t only_rank = -1;       // the only one that may run the program; -1: any
  bool has_collectives = true;  // otherwise only sizes depend on the rank in it
};

std::vector<GroupUse> groups_of(const EngineData& data);  // of collectives by first use, then of sizes

// Whether the step is a collective whose operand and result are on a device, which may do it without the
// host. An attribute of the routine says so.
constexpr std::string_view kOnDevice = "on_device";
bool is_device_collective(const Step& step);

// What must be the same on all ranks: the collectives in their order and, if no rank has a program of its
// own, the nodes of the model.
uint64_t collective_tag(const EngineData& data);

}  // namespace ingot::core
