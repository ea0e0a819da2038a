// SPDX-License-Identifier: Apache-2.0
#include "support/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstring>

namespace ingot::core {

Checksum checksum(Bytes data) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(data.data(), data.size()));
  Checksum result;
  std::memcpy(result.data(), canonical.digest, result.size());
  return result;
}

std::string hex(Bytes data) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * data.size());
  for (const std::byte each : data) {
    text += kDigits[std::to_integer<size_t>(each >> 4)];
    text += kDigits[std::to_integer<size_t>(each & std::byte{0xF})];
  }
  return text;
}

}  // namespace ingot::core
