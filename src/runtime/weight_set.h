// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "engine/shard.h"
#include "support/hash.h"

namespace ingot::core {

using WeightPointers = std::vector<std::shared_ptr<const std::byte>>;

struct WeightPlan;

// The results of init, or the prepared weights of a file: one pointer per weight id. Immutable; old sets are
// freed with their last run.
struct WeightSet {
  uint64_t generation = 0;                 // unique among the engine and its copies
  std::optional<uint32_t> missing;         // the first weight without a value that the main program reads
  WeightPointers data;                     // on the host, null if a value is not kept
  std::vector<WeightPointers> on_devices;  // one per device: null if no program there reads it
  WeightPointers pinned;  // on the host, for copies to a device by its queues: of streamed weights
  std::shared_ptr<const WeightPlan> plan;  // of main's weights on the device; null: all are there
  WeightPointers sources;                  // values of the model's weights, null if not kept
  // Sources with new values from refits, by index: SHA-256 of those not kept, zero for the others.
  std::map<size_t, Digest> refitted;
  ShardRanks ranks;                          // of which the parts of sharded weights are
  std::vector<std::filesystem::path> files;  // absolute: all sources have their values from them, if any

  const WeightPointers& at(uint8_t place_number) const {
    return place_number == 0 ? data : on_devices[place_number - 1u];
  }
  // A new value on the host: drops other copies of the old one.
  void set(size_t id, std::shared_ptr<const std::byte> value) {
    if (data[id] == value) return;
    data[id] = std::move(value);
    for (WeightPointers& copies : on_devices) copies[id] = nullptr;
    if (!pinned.empty()) pinned[id] = nullptr;
  }
};

}  // namespace ingot::core
