// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "support/hash.h"

namespace ingot::core {

// What init made, or what the file holds prepared: one pointer a weight id. Immutable; old sets die with
// their last run.
struct WeightSet {
  uint64_t generation = 0;  // unique in the engine
  int32_t missing = -1;     // the first weight that the main program reads and that has no value, or -1
  std::vector<std::shared_ptr<const std::byte>> data;  // null where a value is not kept
  std::vector<std::shared_ptr<const std::byte>>
      sources;  // values of the model's weights, null where they are not kept
  // Sources that refits gave new values, by index: SHA-256 of those that are not kept, zero of the others.
  std::map<size_t, Digest> refitted;
};

}  // namespace ingot::core
