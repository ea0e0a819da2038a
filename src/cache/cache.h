// SPDX-License-Identifier: Apache-2.0
// What was made once is found again, by the text of everything that decides it. A cache knows neither what
// its entries are nor who makes them.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "cache/cache_key.h"
#include "cache/cache_use.h"
#include "cache/memory_store.h"

namespace ingot::core {

struct CacheCounts {
  uint64_t made = 0, from_memory = 0, from_disk = 0, from_tiers = 0, from_other_threads = 0;
};

// Thread-safe. Of several threads that ask for one key at once, one makes the entry and the others wait for
// it.
class Cache {
 public:
  explicit Cache(size_t memory_bytes) : memory_(memory_bytes) {}

  using Make = std::function<std::vector<std::byte>()>;
  // What `make` throws passes through, and one of the threads that waited tries in its turn.
  FoundEntry get(const CacheKey& key, const CacheUse& use, const Make& make);

  // For entries that are not kernels, which are not counted. Null: the entry is nowhere.
  Blob find(const CacheKey& key, const CacheUse& use);
  // In memory, unless it is so large that kernels would have to go.
  void keep(const CacheKey& key, Blob value);
  bool has_room(size_t bytes) const { return bytes <= memory_.size().capacity / 8; }

  CacheCounts counts() const;
  MemoryStore& memory() { return memory_; }

 private:
  // An entry that a thread is making.
  struct Flight {
    bool is_over = false;
    Blob result;  // null: it failed
  };
  FoundEntry find_or_make(const CacheKey& key, const CacheUse& use, const Make& make);
  FoundEntry fly(const CacheKey& key, const CacheUse& use, const Make& make,
                 const std::shared_ptr<Flight>& flight);
  void land(const CacheKey& key, const std::shared_ptr<Flight>& flight, Blob result);

  MemoryStore memory_;
  std::mutex mutex_;  // of the flights
  std::condition_variable landed_;
  std::map<std::string, std::shared_ptr<Flight>> flights_;  // by the key's text
  std::atomic<uint64_t> made_{0}, from_memory_{0}, from_disk_{0}, from_tiers_{0}, from_other_threads_{0};
};

}  // namespace ingot::core
