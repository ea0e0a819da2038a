// SPDX-License-Identifier: Apache-2.0
// SHA-256 (FIPS 180-4), with the processor's SHA instructions if it has them.
#include <algorithm>
#include <bit>
#include <cstring>

#include "support/hash.h"
#include "support/sha256_blocks.h"

namespace ingot::core {
namespace {

constexpr size_t kBlockBytes = 64;
constexpr size_t kLengthField = 8;

void store_big_endian(uint64_t value, std::span<std::byte> target) {
  for (size_t i = target.size(); i-- > 0; value >>= 8) target[i] = static_cast<std::byte>(value & 0xFF);
}

}  // namespace

DigestBuilder::DigestBuilder()
    : state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19},
      block_{} {}

void DigestBuilder::update(Bytes data) {
  const size_t used = length_ % kBlockBytes;
  length_ += data.size();
  if (used != 0) {
    const size_t taken = std::min(data.size(), kBlockBytes - used);
    std::memcpy(block_.data() + used, data.data(), taken);
    if (used + taken < kBlockBytes) return;
    sha256_blocks(state_, block_);
    data = data.subspan(taken);
  }
  const size_t whole = data.size() / kBlockBytes * kBlockBytes;
  sha256_blocks(state_, data.first(whole));
  std::ranges::copy(data.subspan(whole), block_.begin());
}

void DigestBuilder::update_two(DigestBuilder& first, Bytes of_first, DigestBuilder& second, Bytes of_second) {
  const bool are_aligned = (first.length_ | second.length_) % kBlockBytes == 0;
  const size_t common = std::min(of_first.size(), of_second.size());
  const size_t whole = are_aligned ? common / kBlockBytes * kBlockBytes : 0;
  sha256_two(first.state_, second.state_, of_first.data(), of_second.data(), whole);
  first.length_ += whole;
  second.length_ += whole;
  first.update(of_first.subspan(whole));
  second.update(of_second.subspan(whole));
}

Digest DigestBuilder::finish() {
  const size_t used = length_ % kBlockBytes;
  std::array<std::byte, 2 * kBlockBytes> tail{};
  std::copy_n(block_.begin(), used, tail.begin());
  tail[used] = std::byte{0x80};
  const size_t size = used + 1 + kLengthField <= kBlockBytes ? kBlockBytes : 2 * kBlockBytes;
  store_big_endian(length_ * 8, std::span(tail).subspan(size - kLengthField, kLengthField));
  sha256_blocks(state_, std::span(tail).first(size));
  Digest result;
  for (size_t i = 0; i < state_.size(); ++i) store_big_endian(state_[i], std::span(result).subspan(4 * i, 4));
  return result;
}

Digest digest(Bytes data) {
  DigestBuilder builder;
  builder.update(data);
  return builder.finish();
}

}  // namespace ingot::core
