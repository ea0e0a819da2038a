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

// Entries in memory. When the capacity is reached, the least recently used ones are compressed, and go when
// that is not enough. Thread-safe.
class MemoryStore {
 public:
  explicit MemoryStore(size_t capacity) : capacity_(capacity) {}  // in bytes, keys included

  Blob find(const CacheKey& key);
  // Replaces an entry of that digest. One that is larger than the capacity is not kept.
  void put(const CacheKey& key, Blob value);
  void clear();

  struct Size {
    size_t entries = 0, compressed = 0, bytes = 0, capacity = 0, evicted = 0;
  };
  Size size() const;

 private:
  struct Entry {
    CacheKey key;  // without its text if it is compressed
    Blob value;    // of a compressed entry: text and value, compressed
    size_t text_length = 0, value_length = 0;
    bool is_compressed = false, is_dense = false;  // dense: compressing it gains nothing

    size_t bytes() const { return key.text.size() + value->size() + sizeof(Entry); }
  };
  using Entries = std::list<Entry>;
  struct DigestHash {
    size_t operator()(const Digest& digest) const;
  };
  void insert(CacheKey key, Blob value);
  void make_room(size_t bytes);
  void compress(Entry& entry);
  void drop(Entries::iterator entry);

  const size_t capacity_;
  mutable std::mutex mutex_;
  Entries entries_;  // the most recently used first, so the compressed ones are last
  std::unordered_map<Digest, Entries::iterator, DigestHash> index_;
  size_t bytes_ = 0, compressed_ = 0, evicted_ = 0;
};

}  // namespace ingot::core
