// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/attention_products_text.h"

namespace ingot::core::cuda {
namespace {

constexpr std::string_view kHalves = R"cuda(
DEVICE u32 pack(f32 low, f32 high) { return kBf16 ? pack_bf16(low, high) : pack_f16(low, high); }

DEVICE void multiply_scores(Scores& scores, u16* q, u16* k, int warp_row, int own) {
  const int lane = threadIdx.x % 32;
  #pragma unroll
  for (int d = 0; d < kWidth / 16; ++d) {
    u32 fq[4];
    load_fragments(fq, chunk_of(q, kRows, warp_row + lane % 16, d * 2 + lane / 16));
    #pragma unroll
    for (int j = 0; j < kOwnKeys / 16; ++j) {
      u32 fk[4];
      load_fragments(fk, chunk_of(k, kKeys, own + j * 16 + lane % 8 + lane / 16 * 8, d * 2 + lane / 8 % 2));
      multiply_fragments<kBf16>(scores.each[2 * j], fq, fk[0], fk[1]);
      multiply_fragments<kBf16>(scores.each[2 * j + 1], fq, fk[2], fk[3]);
    }
  }
}

DEVICE void multiply_values(f32 (&values)[kValueWidth / 8][4], const Scores& scores, u16* v, int own) {
  const int lane = threadIdx.x % 32;
  #pragma unroll
  for (int j = 0; j < kOwnKeys / 16; ++j) {
    const f32 (&low)[4] = scores.each[2 * j], (&high)[4] = scores.each[2 * j + 1];
    const u32 weights[4] = {pack(low[0], low[1]), pack(low[2], low[3]), pack(high[0], high[1]), pack(high[2], high[3])};
    #pragma unroll
    for (int n = 0; n < kValueWidth / 16; ++n) {
      u32 fv[4];
      load_fragments_transposed(fv, chunk_of(v, kKeys, own + j * 16 + lane % 16, n * 2 + lane / 16));
      multiply_fragments<kBf16>(values[2 * n], weights, fv[0], fv[1]);
      multiply_fragments<kBf16>(values[2 * n + 1], weights, fv[2], fv[3]);
    }
  }
}
)cuda";

// Sums that are NaN are recomputed, one product after another (float_products_text.h). This is rare: its
// loops stay loops, for unrolled they would be most of the kernel.
constexpr std::string_view kFloats = R"cuda(
DEVICE f32 number_in(f32* tile, int rows, int row, int column) { return chunk_of(tile, rows, row, column / 4)[column % 4]; }

template <int count> struct Odd {  // which sums are NaN; these begin again with 0
  u32 bits[(count * 4 + 31) / 32] = {};
  bool any = false;
  __device__ __forceinline__ explicit Odd(f32 (&sums)[count][4]) {
    if (kRounded) return;
    #pragma unroll
    for (int i = 0; i < count * 4; ++i) {
      f32& sum = sums[i / 4][i % 4];
      if (sum == sum) continue;
      bits[i / 32] |= 1u << i % 32;
      sum = 0;
    }
    u32 all = 0;
    #pragma unroll
    for (u32 each : bits) all |= each;
    any = __any_sync(~0u, all != 0);
  }
  __device__ __forceinline__ void add(f32 (&sums)[count][4], int i, int e, f32 a, f32 b) const {
    const int place = i * 4 + e;
    if (bits[place / 32] >> place % 32 & 1) sums[i][e] = fmaf(a, b, sums[i][e]);
  }
};

DEVICE void multiply_scores(Scores& scores, f32* q, f32* k, int warp_row, int own) {
  constexpr int kTogether = 4;  // fragments that tensor cores add up
  const int lane = threadIdx.x % 32;
  #pragma unroll
  for (int first = 0; first < kWidth / 8; first += kTogether) {
    f32 sums[kOwnKeys / 8][4] = {};
    #pragma unroll
    for (int d = first; d < least(first + kTogether, kWidth / 8); ++d) {
      u32 fq[4];
      load_fragments(fq, chunk_of(q, kRows, warp_row + lane % 16, d * 2 + lane / 16));
      const Parts32<4> pq = parts_of(fq);
      #pragma unroll
      for (int j = 0; j < kOwnKeys / 16; ++j) {
        u32 fk[4];
        load_fragments(fk, chunk_of(k, kKeys, own + j * 16 + lane % 8 + lane / 16 * 8, d * 2 + lane / 8 % 2));
        const Parts32<4> pk = parts_of(fk);
        multiply_parts(sums[2 * j], pq, pk, 0);
        multiply_parts(sums[2 * j + 1], pq, pk, 2);
      }
    }
    #pragma unroll
    for (int j = 0; j < kOwnKeys / 8; ++j)
      #pragma unroll
      for (int e = 0; e < 4; ++e) scores.each[j][e] += sums[j][e];
  }
  const Odd<kOwnKeys / 8> odd(scores.each);
  if (!odd.any) return;
  #pragma unroll 1
  for (int d = 0; d < kWidth; ++d)
    #pragma unroll
    for (int j = 0; j < kOwnKeys / 8; ++j)
      #pragma unroll
      for (int e = 0; e < 4; ++e)
        odd.add(scores.each, j, e, number_in(q, kRows, warp_row + lane / 4 + e / 2 * 8, d), number_in(k, kKeys, own + j * 8 + lane % 4 * 2 + e % 2, d));
}

// A lane's scores are those of keys 2 * (lane % 4) and the next, where fragments have depths lane % 4 and that + 4:
// the keys of a fragment are taken in that order, from both sides.
DEVICE void multiply_values(f32 (&values)[kValueWidth / 8][4], const Scores& scores, f32* v, int own) {
  const int lane = threadIdx.x % 32;
  f32 sums[kValueWidth / 8][4] = {};
  #pragma unroll
  for (int j = 0; j < kOwnKeys / 8; ++j) {
    const f32 (&own_scores)[4] = scores.each[j];
    const u32 weights[4] = {__float_as_uint(own_scores[0]), __float_as_uint(own_scores[2]), __float_as_uint(own_scores[1]), __float_as_uint(own_scores[3])};
    const Parts32<4> pw = parts_of(weights);
    #pragma unroll
    for (int n = 0; n < kValueWidth / 8; ++n) {
      u32 fv[2];
      #pragma unroll
      for (int e = 0; e < 2; ++e) fv[e] = __float_as_uint(number_in(v, kKeys, own + j * 8 + lane % 4 * 2 + e, n * 8 + lane / 4));
      multiply_parts(sums[n], pw, parts_of(fv), 0);
    }
  }
  const Odd<kValueWidth / 8> odd(sums);
  if (odd.any) {
    Scores kept = scores;  // found by number
    #pragma unroll 1
    for (int key = 0; key < kOwnKeys; ++key) {
      const int lane_of_key = lane / 4 * 4 + key % 8 / 2;
      const f32 above = __shfl_sync(~0u, kept.each[key / 8][key % 2], lane_of_key), below = __shfl_sync(~0u, kept.each[key / 8][2 + key % 2], lane_of_key);
      #pragma unroll
      for (int n = 0; n < kValueWidth / 8; ++n)
        #pragma unroll
        for (int e = 0; e < 4; ++e)
          odd.add(sums, n, e, e < 2 ? above : below, number_in(v, kKeys, own + key, n * 8 + lane % 4 * 2 + e % 2));
    }
  }
  #pragma unroll
  for (int n = 0; n < kValueWidth / 8; ++n)
    #pragma unroll
    for (int e = 0; e < 4; ++e) values[n][e] += sums[n][e];
}
)cuda";

}  // namespace

std::string_view attention_products_of_halves() { return kHalves; }
std::string_view attention_products_of_floats() { return kFloats; }

}  // namespace ingot::core::cuda
