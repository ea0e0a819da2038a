// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "support/hash.h"

namespace ingot::core {

enum class EntryKind : uint8_t { kKernel, kEngine, kWeights };
std::string_view name_of(EntryKind kind);  // "kernel"

// What an entry was made from. The digest finds an entry; it is used only if its text is equal, byte for
// byte.
struct CacheKey {
  EntryKind kind;
  std::string text;  // everything that decides the entry's bytes; begins with a line that names the kind
  Digest digest{};   // of `text`
};

CacheKey make_key(EntryKind kind, std::string_view text);

}  // namespace ingot::core
