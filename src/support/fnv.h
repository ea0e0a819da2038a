// SPDX-License-Identifier: Apache-2.0
// FNV-1a: a short hash that different processes agree on. Not against forgery.
#pragma once

#include <cstdint>
#include <string_view>

namespace ingot::core {

constexpr uint64_t fnv_hash(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char letter : text) hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
  return hash;
}

}  // namespace ingot::core
