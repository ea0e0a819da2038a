// SPDX-License-Identifier: Apache-2.0
// Offsets for blocks of known size and lifetime: the classic problem, solved for the typical sizes only.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/lifetimes.h"

namespace ingot::core {

struct Block {
  int64_t bytes;  // at least 1
  Lifetime life;
};

struct Placement {
  std::vector<int64_t> offsets;  // one a block
  int64_t total = 0;
};

// The most bytes that are alive at one step: no placement takes less.
int64_t liveness_bound(std::span<const Block> blocks);

// Greedy by size, by breadth and by size x duration; the best of them, improved by a bounded search while it
// is above the bound. Deterministic.
Placement place(std::span<const Block> blocks);

}  // namespace ingot::core
