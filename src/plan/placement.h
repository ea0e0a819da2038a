// SPDX-License-Identifier: Apache-2.0
// Offsets for blocks of known size and lifetime (dynamic storage allocation), at the typical sizes only.
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
  std::vector<int64_t> offsets;  // one per block
  int64_t total = 0;
};

// The maximum of live bytes over all steps: a lower bound of any placement.
int64_t liveness_bound(std::span<const Block> blocks);

// The best of greedy by size, by breadth and by size x duration; improved by a bounded search if it is above
// the bound. Deterministic.
Placement place(std::span<const Block> blocks);

}  // namespace ingot::core
