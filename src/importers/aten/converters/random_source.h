// SPDX-License-Identifier: Apache-2.0
// Random numbers that an engine draws itself: functions of a state, which each run advances.
#pragma once

#include <cstdint>
#include <functional>

#include "ir/graph.h"

namespace ingot::core::aten {

struct RandomSource {
  std::function<core::Value*()> make_state;
  core::Value* state = nullptr;  // i64[2]: the seed, and the number of runs so far; made by the first draw
  int64_t draws = 0;             // no two draws of a program return the same numbers
};

}  // namespace ingot::core::aten
