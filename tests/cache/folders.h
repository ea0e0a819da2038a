// SPDX-License-Identifier: Apache-2.0
// Short spellings for tests of caches.
#pragma once

#include <string_view>
#include <vector>

#include "cache/memory_store.h"
#include "tests/support/temporary_folder.h"

namespace ingot::core::testing {

inline std::vector<std::byte> bytes_of(size_t size, int value = 7) {
  return std::vector<std::byte>(size, static_cast<std::byte>(value));
}

inline CacheKey kernel(std::string_view text) { return make_key(EntryKind::kKernel, text); }

inline bool same(const Blob& blob, const std::vector<std::byte>& bytes) {
  return blob != nullptr && *blob == bytes;
}

}  // namespace ingot::core::testing
