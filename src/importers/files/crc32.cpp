// SPDX-License-Identifier: Apache-2.0
// Eight bytes at a time with tables, or 64 at a time with carry-less multiplication: weights have gigabytes.
#include <array>
#include <span>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "importers/files/crc32.h"

namespace ingot::core {
namespace {

constexpr uint32_t kPolynomial = 0xedb88320;  // bit-reversed

using Tables = std::array<std::array<uint32_t, 256>, 8>;

// tables[k][b]: the contribution of byte b followed by k more bytes.
constexpr Tables make_tables() {
  Tables tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ (value & 1 ? kPolynomial : 0u);
    tables[0][byte] = value;
  }
  for (size_t k = 1; k < tables.size(); ++k)
    for (size_t byte = 0; byte < 256; ++byte)
      tables[k][byte] = (tables[k - 1][byte] >> 8) ^ tables[0][tables[k - 1][byte] & 0xff];
  return tables;
}
constexpr Tables kTables = make_tables();

uint32_t by_tables(uint32_t state, Bytes data) {
  size_t i = 0;
  for (; i + 8 <= data.size(); i += 8) {
    uint32_t next = 0;
    for (size_t k = 0; k < 8; ++k) {
      const uint32_t mask = k < 4 ? state >> (8 * k) : 0;
      next ^= kTables[7 - k][(std::to_integer<uint32_t>(data[i + k]) ^ mask) & 0xff];
    }
    state = next;
  }
  for (; i < data.size(); ++i)
    state = (state >> 8) ^ kTables[0][(std::to_integer<uint32_t>(data[i]) ^ state) & 0xff];
  return state;
}

#if defined(__x86_64__)
constexpr size_t kBlock = 64;
constexpr size_t kLanes = 4;

// A power of x in the form that carry-less multiplication needs for bit-reversed polynomials.
constexpr int64_t power_of_x(int exponent) {
  uint32_t value = 0x80000000u;
  for (int i = 0; i < exponent; ++i) value = (value >> 1) ^ (value & 1 ? kPolynomial : 0u);
  return static_cast<int64_t>(value) << 1;
}

// Folds whole blocks into 64 bytes with the same remainder: each 16-byte lane is multiplied by x^512, in two
// halves.
__attribute__((target("pclmul,sse2"))) void fold_blocks(uint32_t state, Bytes blocks,
                                                        std::span<std::byte, kBlock> folded) {
  const __m128i factors = _mm_set_epi64x(power_of_x(512 - 32), power_of_x(512 + 32));
  const auto load = [&](size_t at, size_t lane) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(blocks.data() + at) + lane);
  };
  __m128i lanes[kLanes];
  for (size_t lane = 0; lane < kLanes; ++lane) lanes[lane] = load(0, lane);
  lanes[0] = _mm_xor_si128(lanes[0], _mm_cvtsi32_si128(static_cast<int>(state)));
  for (size_t at = kBlock; at < blocks.size(); at += kBlock) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const __m128i low = _mm_clmulepi64_si128(lanes[lane], factors, 0x00);
      const __m128i high = _mm_clmulepi64_si128(lanes[lane], factors, 0x11);
      lanes[lane] = _mm_xor_si128(_mm_xor_si128(low, high), load(at, lane));
    }
  }
  for (size_t lane = 0; lane < kLanes; ++lane)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(folded.data()) + lane, lanes[lane]);
}

bool can_fold(size_t bytes) { return bytes >= 2 * kBlock && __builtin_cpu_supports("pclmul"); }

// Folds up to the last whole block; tables handle the remainder.
uint32_t by_folding(uint32_t state, Bytes data) {
  const size_t whole = data.size() / kBlock * kBlock;
  std::array<std::byte, kBlock> folded;
  fold_blocks(state, data.first(whole), folded);
  return by_tables(by_tables(0, folded), data.subspan(whole));
}
#else
bool can_fold(size_t) { return false; }
uint32_t by_folding(uint32_t state, Bytes data) { return by_tables(state, data); }
#endif

}  // namespace

uint32_t crc32(Bytes data) {
  constexpr uint32_t kFirst = ~0u;
  return ~(can_fold(data.size()) ? by_folding(kFirst, data) : by_tables(kFirst, data));
}

}  // namespace ingot::core
