// SPDX-License-Identifier: Apache-2.0
// How one build uses a cache: what it may look up and keep, and where entries are that are not in memory.
#pragma once

#include <memory>
#include <vector>

#include "cache/cache_key.h"
#include "cache/cache_problems.h"
#include "cache/disk_store.h"
#include "cache/entry_tier.h"
#include "cache/memory_store.h"
#include "cache/write_policy.h"
#include "support/background.h"

namespace ingot::core {

// Where the bytes of an entry came from. kTier: from one beneath the disk.
enum class Origin : uint8_t { kMade, kMemory, kDisk, kTier, kOtherThread };

struct FoundEntry {
  Blob bytes;  // null: it is nowhere
  Origin origin = Origin::kMade;
};

struct UsedTier {
  std::shared_ptr<EntryTier> tier;
  WritePolicy policy = WritePolicy::kThrough;
};

struct CacheUse {
  bool reuse = true;                                // else nothing is looked up
  bool keep = true;                                 // else what is made is forgotten
  std::shared_ptr<DiskStore> disk;                  // asked after memory; null: none
  WritePolicy disk_policy = WritePolicy::kThrough;  // one that is not used is not here: never kNone
  std::vector<UsedTier> tiers;                      // asked after the disk, in this order; likewise
  std::shared_ptr<CacheProblems> problems;          // null: nobody wants to know
  BackgroundWork* background = nullptr;             // for kBack; null: there is none

  bool has_stores() const { return disk != nullptr || !tiers.empty(); }
  // Both throw only what CacheProblems::check throws.
  FoundEntry find(const CacheKey& key) const;  // what one store has is kept in those asked before it
  // `held` lives until all stores have the entry, or lost it.
  void put(const CacheKey& key, const Blob& value, std::shared_ptr<const void> held = {}) const;
  ReportProblem report() const;

 private:
  Blob find_in(EntryTier& tier, const CacheKey& key) const;
  // To the disk and the first `count` tiers.
  void put_above(size_t count, const CacheKey& key, const Blob& value,
                 std::shared_ptr<const void> held) const;
  void write(WritePolicy policy, size_t count, const CacheKey& key, Bytes value) const;
  bool has(WritePolicy policy, size_t count) const;
};

}  // namespace ingot::core
