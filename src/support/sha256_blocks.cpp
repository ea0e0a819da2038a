// SPDX-License-Identifier: Apache-2.0
#include "support/sha256_blocks.h"

#include <atomic>
#include <bit>
#include <cstddef>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace ingot::core {
namespace {

constexpr size_t kBlock = 64;

// Fractional parts of the cube roots of the first 64 primes.
alignas(16) constexpr std::array<uint32_t, 64> kRoundConstants = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

uint32_t load_big_endian(const std::byte* source) {
  return std::to_integer<uint32_t>(source[0]) << 24 | std::to_integer<uint32_t>(source[1]) << 16 |
         std::to_integer<uint32_t>(source[2]) << 8 | std::to_integer<uint32_t>(source[3]);
}

std::array<uint32_t, 64> expand_schedule(const std::byte* block) {
  std::array<uint32_t, 64> words;
  for (size_t i = 0; i < 16; ++i) words[i] = load_big_endian(block + 4 * i);
  for (size_t i = 16; i < 64; ++i) {
    const uint32_t a = words[i - 15];
    const uint32_t b = words[i - 2];
    const uint32_t small0 = std::rotr(a, 7) ^ std::rotr(a, 18) ^ (a >> 3);
    const uint32_t small1 = std::rotr(b, 17) ^ std::rotr(b, 19) ^ (b >> 10);
    words[i] = words[i - 16] + small0 + words[i - 7] + small1;
  }
  return words;
}

void compress(DigestState& state, const std::byte* block) {
  const std::array<uint32_t, 64> words = expand_schedule(block);
  auto [a, b, c, d, e, f, g, h] = state;
  for (size_t i = 0; i < 64; ++i) {
    const uint32_t big1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const uint32_t choice = (e & f) ^ (~e & g);
    const uint32_t first = h + big1 + choice + kRoundConstants[i] + words[i];
    const uint32_t big0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const uint32_t majority = (a & b) ^ (a & c) ^ (b & c);
    h = g, g = f, f = e, e = d + first;
    d = c, c = b, b = a, a = first + big0 + majority;
  }
  const DigestState added = {a, b, c, d, e, f, g, h};
  for (size_t i = 0; i < state.size(); ++i) state[i] += added[i];
}

}  // namespace

void sha256_blocks_portable(DigestState& state, Bytes blocks) {
  for (size_t at = 0; at < blocks.size(); at += kBlock) compress(state, blocks.data() + at);
}

#if defined(__x86_64__)

bool has_sha_instructions() {
  constexpr unsigned kShaBit = 1U << 29;  // leaf 7, ebx
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & kShaBit) != 0 &&
         __builtin_cpu_supports("sse4.1");
}

namespace {

// The instructions expect the state as (a, b, e, f) and (c, d, g, h), highest word first.
struct PackedState {
  __m128i abef;
  __m128i cdgh;
};

__attribute__((target("sha,sse4.1"))) inline PackedState pack(const DigestState& state) {
  const __m128i abcd = _mm_loadu_si128(reinterpret_cast<const __m128i*>(state.data()));
  const __m128i efgh = _mm_loadu_si128(reinterpret_cast<const __m128i*>(state.data() + 4));
  const __m128i badc = _mm_shuffle_epi32(abcd, 0xB1);
  const __m128i hgfe = _mm_shuffle_epi32(efgh, 0x1B);
  return {_mm_alignr_epi8(badc, hgfe, 8), _mm_blend_epi16(hgfe, badc, 0xF0)};
}

__attribute__((target("sha,sse4.1"))) inline void unpack(const PackedState& packed, DigestState& state) {
  const __m128i feba = _mm_shuffle_epi32(packed.abef, 0x1B);
  const __m128i dchg = _mm_shuffle_epi32(packed.cdgh, 0xB1);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(state.data()), _mm_blend_epi16(feba, dchg, 0xF0));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(state.data() + 4), _mm_alignr_epi8(dchg, feba, 8));
}

// Four rounds with four words of the message schedule.
__attribute__((target("sha,sse4.1"))) inline void rounds(PackedState& packed, __m128i words, size_t first) {
  const auto* constants = reinterpret_cast<const __m128i*>(kRoundConstants.data() + first);
  const __m128i sum = _mm_add_epi32(words, _mm_load_si128(constants));
  packed.cdgh = _mm_sha256rnds2_epu32(packed.cdgh, packed.abef, sum);
  packed.abef = _mm_sha256rnds2_epu32(packed.abef, packed.cdgh, _mm_shuffle_epi32(sum, 0x0E));
}

// The next block of each of `Streams`, whose instructions take turns: those of one wait for each other.
template <size_t Streams>
__attribute__((target("sha,sse4.1"))) inline void compress_x86(PackedState* packed,
                                                               const std::byte* const* blocks, size_t at) {
  const __m128i to_big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  PackedState before[Streams];
  __m128i words[Streams][4];  // std::array would lose its alignment attribute
  for (size_t k = 0; k < Streams; ++k) before[k] = packed[k];
#pragma GCC unroll 4
  for (size_t i = 0; i < 4; ++i) {
#pragma GCC unroll 2
    for (size_t k = 0; k < Streams; ++k) {
      const __m128i loaded = _mm_loadu_si128(reinterpret_cast<const __m128i*>(blocks[k] + at) + i);
      words[k][i] = _mm_shuffle_epi8(loaded, to_big_endian);
      rounds(packed[k], words[k][i], 4 * i);
    }
  }
#pragma GCC unroll 12
  for (size_t i = 4; i < 16; ++i) {
#pragma GCC unroll 2
    for (size_t k = 0; k < Streams; ++k) {
      __m128i* const own = words[k];
      const __m128i last = own[(i + 3) % 4];
      const __m128i seven_back = _mm_alignr_epi8(last, own[(i + 2) % 4], 4);
      const __m128i partial = _mm_add_epi32(_mm_sha256msg1_epu32(own[i % 4], own[(i + 1) % 4]), seven_back);
      own[i % 4] = _mm_sha256msg2_epu32(partial, last);
      rounds(packed[k], own[i % 4], 4 * i);
    }
  }
  for (size_t k = 0; k < Streams; ++k) {
    packed[k].abef = _mm_add_epi32(packed[k].abef, before[k].abef);
    packed[k].cdgh = _mm_add_epi32(packed[k].cdgh, before[k].cdgh);
  }
}

}  // namespace

__attribute__((target("sha,sse4.1"))) void sha256_blocks_x86(DigestState& state, Bytes blocks) {
  PackedState packed = pack(state);
  const std::byte* const data = blocks.data();
  for (size_t at = 0; at < blocks.size(); at += kBlock) compress_x86<1>(&packed, &data, at);
  unpack(packed, state);
}

__attribute__((target("sha,sse4.1"))) void sha256_two_x86(DigestState& first, DigestState& second,
                                                          const std::byte* of_first,
                                                          const std::byte* of_second, size_t bytes) {
  PackedState packed[] = {pack(first), pack(second)};
  const std::byte* const blocks[] = {of_first, of_second};
  for (size_t at = 0; at < bytes; at += kBlock) compress_x86<2>(packed, blocks, at);
  unpack(packed[0], first);
  unpack(packed[1], second);
}

#else

bool has_sha_instructions() { return false; }

void sha256_blocks_x86(DigestState& state, Bytes blocks) { sha256_blocks_portable(state, blocks); }

void sha256_two_x86(DigestState& first, DigestState& second, const std::byte* of_first,
                    const std::byte* of_second, size_t bytes) {
  sha256_blocks_portable(first, Bytes(of_first, bytes));
  sha256_blocks_portable(second, Bytes(of_second, bytes));
}

#endif

namespace {

bool knows_sha_instructions() {
  // Not a guarded static: a child forked during the first evaluation would wait for it forever.
  constinit static std::atomic<int> known{-1};
  int hardware = known.load(std::memory_order_relaxed);
  if (hardware < 0) known = hardware = has_sha_instructions() ? 1 : 0;
  return hardware == 1;
}

}  // namespace

void sha256_blocks(DigestState& state, Bytes blocks) {
  knows_sha_instructions() ? sha256_blocks_x86(state, blocks) : sha256_blocks_portable(state, blocks);
}

void sha256_two(DigestState& first, DigestState& second, const std::byte* of_first,
                const std::byte* of_second, size_t bytes) {
  if (knows_sha_instructions()) return sha256_two_x86(first, second, of_first, of_second, bytes);
  sha256_blocks_portable(first, Bytes(of_first, bytes));
  sha256_blocks_portable(second, Bytes(of_second, bytes));
}

}  // namespace ingot::core
