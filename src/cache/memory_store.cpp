// SPDX-License-Identifier: Apache-2.0
#include "cache/memory_store.h"

#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "support/error.h"

namespace ingot::core {
namespace {

constexpr int kLevel = 1;  // machine code becomes half as long, at some 300 MB/s

// Text and value, one after the other; empty if that gains less than a tenth.
std::vector<std::byte> compressed(std::string_view text, Bytes value) {
  std::vector<std::byte> both;
  both.reserve(text.size() + value.size());
  const Bytes head = as_bytes(text);
  both.insert(both.end(), head.begin(), head.end());
  both.insert(both.end(), value.begin(), value.end());
  std::vector<std::byte> packed(both.size() - both.size() / 10);
  const size_t size = ZSTD_compress(packed.data(), packed.size(), both.data(), both.size(), kLevel);
  packed.resize(ZSTD_isError(size) ? 0 : size);
  packed.shrink_to_fit();
  return packed;
}

std::vector<std::byte> decompressed(Bytes packed, size_t size) {
  std::vector<std::byte> both(size);
  invariant(ZSTD_decompress(both.data(), size, packed.data(), packed.size()) == size,
            "memory of the cache was overwritten");
  return both;
}

}  // namespace

size_t MemoryStore::DigestHash::operator()(const Digest& digest) const {
  size_t hash = 0;
  std::memcpy(&hash, digest.data(), sizeof(hash));
  return hash;
}

Blob MemoryStore::find(const CacheKey& key) {
  const std::scoped_lock lock(mutex_);
  const auto found = index_.find(key.digest);
  if (found == index_.end()) return nullptr;
  const Entries::iterator entry = found->second;
  if (!entry->is_compressed) {
    if (entry->key.text != key.text) return nullptr;
    entries_.splice(entries_.begin(), entries_, entry);
    return entry->value;
  }
  const auto both = decompressed(*entry->value, entry->text_length + entry->value_length);
  const Bytes text = Bytes(both).first(entry->text_length), value = Bytes(both).subspan(entry->text_length);
  if (!std::ranges::equal(text, as_bytes(key.text))) return nullptr;
  drop(entry);
  Blob bytes = std::make_shared<const std::vector<std::byte>>(value.begin(), value.end());
  insert(key, bytes);
  return bytes;
}

void MemoryStore::put(const CacheKey& key, Blob value) {
  const std::scoped_lock lock(mutex_);
  if (const auto old = index_.find(key.digest); old != index_.end()) drop(old->second);
  insert(key, std::move(value));
}

void MemoryStore::insert(CacheKey key, Blob value) {
  Entry entry{.key = std::move(key), .value = std::move(value)};
  entry.text_length = entry.key.text.size();
  entry.value_length = entry.value->size();
  const size_t bytes = entry.bytes();
  if (bytes > capacity_) return;
  make_room(bytes);
  entries_.push_front(std::move(entry));
  index_[entries_.front().key.digest] = entries_.begin();
  bytes_ += bytes;
}

void MemoryStore::make_room(size_t bytes) {
  for (auto entry = entries_.rbegin(); entry != entries_.rend() && bytes_ + bytes > capacity_; ++entry) {
    if (!entry->is_compressed && !entry->is_dense) compress(*entry);
  }
  for (; bytes_ + bytes > capacity_; ++evicted_) drop(std::prev(entries_.end()));
}

void MemoryStore::compress(Entry& entry) {
  std::vector<std::byte> packed = compressed(entry.key.text, *entry.value);
  entry.is_dense = packed.empty();
  if (entry.is_dense) return;
  bytes_ -= entry.bytes();
  entry.key.text = {};
  entry.value = std::make_shared<const std::vector<std::byte>>(std::move(packed));
  entry.is_compressed = true;
  bytes_ += entry.bytes();
  ++compressed_;
}

void MemoryStore::clear() {
  const std::scoped_lock lock(mutex_);
  while (!entries_.empty()) drop(entries_.begin());
}

MemoryStore::Size MemoryStore::size() const {
  const std::scoped_lock lock(mutex_);
  return {entries_.size(), compressed_, bytes_, capacity_, evicted_};
}

void MemoryStore::drop(Entries::iterator entry) {
  bytes_ -= entry->bytes();
  compressed_ -= entry->is_compressed ? 1 : 0;
  index_.erase(entry->key.digest);
  entries_.erase(entry);
}

}  // namespace ingot::core
