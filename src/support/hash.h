// SPDX-License-Identifier: Apache-2.0
// Two digests: XXH3-128 detects damage, SHA-256 is identity (keys, signatures).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "support/bytes.h"

namespace ingot::core {

Checksum checksum(Bytes data);
Digest digest(Bytes data);
uint64_t short_hash(
    std::string_view text);   // part of its checksum: equal on all machines, not against forgery
std::string hex(Bytes data);  // lower-case hexadecimal

// SHA-256 of data that arrives in pieces.
class DigestBuilder {
 public:
  DigestBuilder();
  void update(Bytes data);
  // first.update(of_first) and second.update(of_second), which takes less time for data of similar lengths.
  static void update_two(DigestBuilder& first, Bytes of_first, DigestBuilder& second, Bytes of_second);
  Digest finish();  // the builder may not be used afterwards

 private:
  std::array<uint32_t, 8> state_;
  std::array<std::byte, 64> block_;
  uint64_t length_ = 0;  // bytes seen
};

}  // namespace ingot::core
