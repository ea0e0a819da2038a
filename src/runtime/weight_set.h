// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "support/hash.h"

namespace ingot::core {

using WeightPointers = std::vector<std::shared_ptr<const std::byte>>;

// What init made, or what the file holds prepared: one pointer a weight id. Immutable; old sets die with
// their last run.
struct WeightSet {
  uint64_t generation = 0;  // unique in the engine
  int32_t missing = -1;     // the first weight that the main program reads and that has no value, or -1
  WeightPointers data;      // on the host, null where a value is not kept
  std::vector<WeightPointers> on_devices;  // one a device: null where no program there reads it
  WeightPointers sources;                  // values of the model's weights, null where they are not kept
  // Sources that refits gave new values, by index: SHA-256 of those that are not kept, zero of the others.
  std::map<size_t, Digest> refitted;

  const WeightPointers& at(uint8_t place_number) const {
    return place_number == 0 ? data : on_devices[place_number - 1u];
  }
  // A new value on the host: copies of the old one are forgotten.
  void set(size_t id, std::shared_ptr<const std::byte> value) {
    if (data[id] == value) return;
    data[id] = std::move(value);
    for (WeightPointers& copies : on_devices) copies[id] = nullptr;
  }
};

}  // namespace ingot::core
