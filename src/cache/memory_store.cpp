// SPDX-License-Identifier: Apache-2.0
#include "cache/memory_store.h"

#include <cstring>
#include <utility>

namespace ingot::core {

size_t MemoryStore::DigestHash::operator()(const Digest& digest) const {
  size_t hash = 0;
  std::memcpy(&hash, digest.data(), sizeof(hash));
  return hash;
}

Blob MemoryStore::find(const CacheKey& key) {
  const std::scoped_lock lock(mutex_);
  const auto found = index_.find(key.digest);
  if (found == index_.end() || found->second->key.text != key.text) return nullptr;
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->value;
}

void MemoryStore::put(const CacheKey& key, Blob value) {
  Entry entry{key, std::move(value)};
  const size_t bytes = entry.bytes();
  const std::scoped_lock lock(mutex_);
  if (const auto old = index_.find(key.digest); old != index_.end()) drop(old->second);
  if (bytes > capacity_) return;
  for (; bytes_ + bytes > capacity_; ++evicted_) drop(std::prev(entries_.end()));
  entries_.push_front(std::move(entry));
  index_[key.digest] = entries_.begin();
  bytes_ += bytes;
}

void MemoryStore::clear() {
  const std::scoped_lock lock(mutex_);
  while (!entries_.empty()) drop(entries_.begin());
}

MemoryStore::Size MemoryStore::size() const {
  const std::scoped_lock lock(mutex_);
  return {entries_.size(), bytes_, capacity_, evicted_};
}

void MemoryStore::drop(std::list<Entry>::iterator entry) {
  bytes_ -= entry->bytes();
  index_.erase(entry->key.digest);
  entries_.erase(entry);
}

}  // namespace ingot::core
