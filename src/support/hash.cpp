// SPDX-License-Identifier: Apache-2.0
#include "support/hash.h"

#include <cstring>
#include <span>

#include "support/xxh3.h"

namespace ingot::core {

Checksum checksum(Bytes data) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) return xxh3_avx2(data);
#endif
  return xxh3_portable(data);
}

uint64_t short_hash(std::string_view text) {
  const Checksum whole = checksum(std::as_bytes(std::span(text)));
  uint64_t hash = 0;
  std::memcpy(&hash, whole.data(), sizeof(hash));
  return hash;
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
