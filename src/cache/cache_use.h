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

namespace ingot::core {

// Where the bytes of an entry came from. kTier: from one beneath the disk.
enum class Origin : uint8_t { kMade, kMemory, kDisk, kTier, kOtherThread };

struct FoundEntry {
  Blob bytes;  // null: it is nowhere
  Origin origin = Origin::kMade;
};

struct CacheUse {
  bool reuse = true;                              // else nothing is looked up
  bool keep = true;                               // else what is made is forgotten
  std::shared_ptr<DiskStore> disk;                // asked after memory; null: none
  std::vector<std::shared_ptr<EntryTier>> tiers;  // asked after the disk, in this order
  std::shared_ptr<CacheProblems> problems;        // null: nobody wants to know

  bool has_stores() const { return disk != nullptr || !tiers.empty(); }
  // Both throw only what CacheProblems::check throws.
  FoundEntry find(const CacheKey& key) const;  // what one store has is kept in those asked before it
  void put(const CacheKey& key, Bytes value) const;
  ReportProblem report() const;

 private:
  Blob find_in(EntryTier& tier, const CacheKey& key) const;
};

}  // namespace ingot::core
