// SPDX-License-Identifier: Apache-2.0
#include "cache/cache_key.h"

namespace ingot::core {

std::string_view name_of(EntryKind kind) {
  constexpr std::string_view kNames[] = {"kernel", "engine", "weights"};
  return kNames[static_cast<size_t>(kind)];
}

CacheKey make_key(EntryKind kind, std::string_view text) {
  CacheKey key{.kind = kind, .text = std::string(name_of(kind))};
  key.text += '\n';
  key.text += text;
  key.digest = digest(as_bytes(key.text));
  return key;
}

}  // namespace ingot::core
