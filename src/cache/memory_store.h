// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "cache/cache_key.h"

namespace ingot::core {

using Blob = std::shared_ptr<const std::vector<std::byte>>;  // the bytes of an entry; null: there is none

// Entries in memory: the least recently used ones go when the capacity is reached. Thread-safe.
class MemoryStore {
 public:
  explicit MemoryStore(size_t capacity) : capacity_(capacity) {}  // in bytes, keys included

  Blob find(const CacheKey& key);
  // Replaces an entry of that digest. One that is larger than the capacity is not kept.
  void put(const CacheKey& key, Blob value);
  void clear();

  struct Size {
    size_t entries = 0, bytes = 0, capacity = 0, evicted = 0;
  };
  Size size() const;

 private:
  struct Entry {
    CacheKey key;
    Blob value;
    size_t bytes() const { return key.text.size() + value->size() + sizeof(Entry); }
  };
  struct DigestHash {
    size_t operator()(const Digest& digest) const;
  };
  void drop(std::list<Entry>::iterator entry);

  const size_t capacity_;
  mutable std::mutex mutex_;
  std::list<Entry> entries_;  // the most recently used first
  std::unordered_map<Digest, std::list<Entry>::iterator, DigestHash> index_;
  size_t bytes_ = 0, evicted_ = 0;
};

}  // namespace ingot::core
