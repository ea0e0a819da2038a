// SPDX-License-Identifier: Apache-2.0
// A cache entry as the bytes of a file. Little-endian:
//   "INGOTENT", u32 format version, u32 kind, u64 length of the text, u64 length of the value, text, value,
//   XXH3-128 of all before it
#pragma once

#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "cache/cache_key.h"

namespace ingot::core {

// A value that consists of `parts`, one after the other.
std::vector<std::byte> seal_entry(const CacheKey& key, std::span<const Bytes> parts);
inline std::vector<std::byte> seal_entry(const CacheKey& key, Bytes value) {
  return seal_entry(key, std::span(&value, 1));
}
// Where the value begins in the file.
size_t value_offset(const CacheKey& key);

struct SealedEntry {
  EntryKind kind;
  std::string_view text;  // these two lie in the file's bytes
  Bytes value;
};
// The parts of a whole file, or what is wrong with it. Reads nothing outside of the file, whatever is in it.
std::variant<SealedEntry, std::string_view> open_entry(Bytes file);
// The value of the entry of that key, or why the file does not hold it.
std::variant<Bytes, std::string_view> open_entry_of(const CacheKey& key, Bytes file);

}  // namespace ingot::core
