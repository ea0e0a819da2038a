// SPDX-License-Identifier: Apache-2.0
#include "support/hash.h"

#include "support/xxh3.h"

namespace ingot::core {

Checksum checksum(Bytes data) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) return xxh3_avx2(data);
#endif
  return xxh3_portable(data);
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
