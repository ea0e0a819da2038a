// SPDX-License-Identifier: Apache-2.0
// Two digests: XXH3-128 detects damage, SHA-256 is identity (keys, signatures).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace ingot::core {

using Bytes = std::span<const std::byte>;
using Checksum = std::array<std::byte, 16>;  // XXH3-128, canonical (big-endian) byte order
using Digest = std::array<std::byte, 32>;    // SHA-256

inline Bytes as_bytes(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }

Checksum checksum(Bytes data);
Digest digest(Bytes data);
std::string hex(Bytes data);  // lower-case hexadecimal

// SHA-256 of data that arrives in pieces.
class DigestBuilder {
 public:
  DigestBuilder();
  void update(Bytes data);
  Digest finish();  // the builder may not be used afterwards

 private:
  std::array<uint32_t, 8> state_;
  std::array<std::byte, 64> block_;
  uint64_t length_ = 0;  // bytes seen
};

}  // namespace ingot::core
