// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/attention_text.h"

namespace ingot::core::cuda {
namespace {

//   for part of the keys, kKeys at a time, the next one being copied meanwhile:
//     each warp: scores of its 16 rows and its share of the part; the largest so far; weights; weights times
//     values
//   shares of the keys, of warps and of blocks of a cluster, are merged in order (online softmax: Milakov and
//   Gimelshein 2018; tiles: Dao et al. 2022)
constexpr std::string_view kAttention = R"cuda(
constexpr int kRows = kWarpRows * 16, kThreads = 128, kStride = kWidth + 8, kValueStride = kValueWidth + 8, kOwnKeys = kKeys / kWarpKeys, kSumStride = kValueWidth + 4;

DEVICE void copy_rows(u16* to, int stride, int width, int rows, idx first, idx end, const u16* (*place)(const Operands&, idx, idx), idx batch, const Operands& x) {
  for (int c = threadIdx.x; c < rows * (width / 8); c += kThreads) {
    const int row = c / (width / 8), column = c % (width / 8) * 8;
    const bool valid = first + row < end;
    const u16* const from = valid ? place(x, batch, first + row) + column : x.q;
    u16* const into = to + row * stride + column;
    if (x.aligned) copy_chunk(into, from, valid);
    else for (int i = 0; i < 8; ++i) into[i] = valid ? from[i] : (u16)0;
  }
}
DEVICE f32 power_of_two(f32 v) { f32 r; asm("ex2.approx.f32 %0, %1;" : "=f"(r) : "f"(v)); return r; }
DEVICE u32 pack(f32 low, f32 high) { return kBf16 ? pack_bf16(low, high) : pack_f16(low, high); }
DEVICE f32 largest_of_row(f32 v) { v = fmaxf(v, __shfl_xor_sync(~0u, v, 1)); return fmaxf(v, __shfl_xor_sync(~0u, v, 2)); }
DEVICE f32 sum_of_row(f32 v) { v += __shfl_xor_sync(~0u, v, 1); return v + __shfl_xor_sync(~0u, v, 2); }

struct Rows {  // a lane's part of 16 rows: rows lane / 4 and that + 8
  f32 values[kValueWidth / 8][4], most[2], total[2];
};

DEVICE void attend_part(Rows& rows, const u16* q, const u16* k, const u16* v, idx first_row, idx first_key, const Mask* mask, idx batch, const Operands& x) {
  const int lane = threadIdx.x % 32, own = threadIdx.x / 32 % kWarpKeys * kOwnKeys, warp_row = threadIdx.x / 32 / kWarpKeys * 16;
  f32 scores[kOwnKeys / 8][4] = {};
  #pragma unroll
  for (int d = 0; d < kWidth / 16; ++d) {
    u32 fq[4];
    load_fragments(fq, q + (warp_row + lane % 16) * kStride + d * 16 + lane / 16 * 8);
    #pragma unroll
    for (int j = 0; j < kOwnKeys / 16; ++j) {
      u32 fk[4];
      load_fragments(fk, k + (own + j * 16 + lane % 8 + lane / 16 * 8) * kStride + d * 16 + lane / 8 % 2 * 8);
      multiply_fragments<kBf16>(scores[2 * j], fq, fk[0], fk[1]);
      multiply_fragments<kBf16>(scores[2 * j + 1], fq, fk[2], fk[3]);
    }
  }
  f32 base[2], factor[2], sum[2] = {0, 0};
  #pragma unroll
  for (int h = 0; h < 2; ++h) {
    const idx row = first_row + warp_row + lane / 4 + h * 8;
    f32 most = rows.most[h];
    #pragma unroll
    for (int j = 0; j < kOwnKeys / 8; ++j)
      #pragma unroll
      for (int e = 0; e < 2; ++e) {
        f32& score = scores[j][h * 2 + e];
        const idx key = first_key + own + j * 8 + lane % 4 * 2 + e;
        score = key < x.keys && row < x.queries ? masked(x, mask, batch, row, key, score * kScale) : -__int_as_float(0x7f800000);
        most = fmaxf(most, score);
      }
    most = largest_of_row(most);
    constexpr f32 kLog2e = 1.44269504f;
    const f32 finite = most == -__int_as_float(0x7f800000) ? 0 : most;
    factor[h] = power_of_two((rows.most[h] - finite) * kLog2e);
    rows.most[h] = most;
    #pragma unroll
    for (int j = 0; j < kOwnKeys / 8; ++j)
      #pragma unroll
      for (int e = 0; e < 2; ++e) {
        f32& score = scores[j][h * 2 + e];
        score = power_of_two((score - finite) * kLog2e);
        sum[h] += score;
      }
    rows.total[h] = rows.total[h] * factor[h] + sum_of_row(sum[h]);
  }
  #pragma unroll
  for (int n = 0; n < kValueWidth / 8; ++n)
    #pragma unroll
    for (int e = 0; e < 4; ++e) rows.values[n][e] *= factor[e / 2];
  #pragma unroll
  for (int j = 0; j < kOwnKeys / 16; ++j) {
    const u32 weights[4] = {pack(scores[2 * j][0], scores[2 * j][1]), pack(scores[2 * j][2], scores[2 * j][3]),
                            pack(scores[2 * j + 1][0], scores[2 * j + 1][1]), pack(scores[2 * j + 1][2], scores[2 * j + 1][3])};
    #pragma unroll
    for (int n = 0; n < kValueWidth / 16; ++n) {
      u32 fv[4];
      load_fragments_transposed(fv, v + (own + j * 16 + lane % 16) * kValueStride + n * 16 + lane / 16 * 8);
      multiply_fragments<kBf16>(rows.values[2 * n], weights, fv[0], fv[1]);
      multiply_fragments<kBf16>(rows.values[2 * n + 1], weights, fv[2], fv[3]);
    }
  }
}

DEVICE void store_half(u16* p, f32 v) { if (kBf16) store_bf16(p, v); else store_f16(p, v); }

// How much each of `count` shares of the keys counts for a row; the row's total and largest score are last.
template <class Load> DEVICE void weigh_shares(f32* factors, int row, int count, const Load& most_and_total) {
  f32 most = -__int_as_float(0x7f800000), total = 0;
  for (int s = 0; s < count; ++s) most = fmaxf(most, most_and_total(s, 1));
  const f32 finite = most == -__int_as_float(0x7f800000) ? 0 : most;
  for (int s = 0; s < count; ++s) {
    const f32 factor = power_of_two((most_and_total(s, 1) - finite) * 1.44269504f);
    factors[s * kRows + row] = factor;
    total += most_and_total(s, 2) * factor;
  }
  factors[count * kRows + row] = total;
  factors[(count + 1) * kRows + row] = most;
}

// Adds up the shares of the warps, then of the blocks of a cluster.
DEVICE void merge(char* shared, int block, const Rows& rows, u16* result, idx batch, idx first_row, const Operands& x) {
  constexpr int kNumbers = kRows * kSumStride;
  f32* const values = (f32*)shared;  // [kWarpKeys][kRows][kSumStride], and the sum of all of them
  f32* const all = values + kWarpKeys * kNumbers;
  f32* const most = all + kNumbers;  // [kWarpKeys][kRows]
  f32* const total = most + kWarpKeys * kRows;
  f32* const factors = total + kWarpKeys * kRows;         // [kWarpKeys + 2][kRows]
  f32* const of_blocks = factors + (kWarpKeys + 2) * kRows;  // [kSplits + 2][kRows]
  const int lane = threadIdx.x % 32, share = threadIdx.x / 32 % kWarpKeys, row = threadIdx.x / 32 / kWarpKeys * 16 + lane / 4;
  #pragma unroll
  for (int n = 0; n < kValueWidth / 8; ++n)
    #pragma unroll
    for (int e = 0; e < 4; ++e) values[(share * kRows + row + e / 2 * 8) * kSumStride + n * 8 + lane % 4 * 2 + e % 2] = rows.values[n][e];
  if (lane % 4 == 0)
    for (int h = 0; h < 2; ++h) {
      most[share * kRows + row + h * 8] = rows.most[h];
      total[share * kRows + row + h * 8] = rows.total[h];
    }
  __syncthreads();
  const int own = threadIdx.x;
  if (own < kRows) weigh_shares(factors, own, kWarpKeys, [&](int s, int what) { return what == 2 ? total[s * kRows + own] : most[s * kRows + own]; });
  __syncthreads();
  const auto sum_of_warps = [&](int r, int column) {
    f32 sum = 0;
    #pragma unroll
    for (int s = 0; s < kWarpKeys; ++s) sum += values[s * kNumbers + r * kSumStride + column] * factors[s * kRows + r];
    return sum;
  };
  if (kSplits > 1) {
    for (int c = threadIdx.x; c < kRows * kValueWidth; c += kThreads)
      all[c / kValueWidth * kSumStride + c % kValueWidth] = sum_of_warps(c / kValueWidth, c % kValueWidth);
    synchronize_cluster();
    if (own < kRows)
      weigh_shares(of_blocks, own, kSplits, [&](int s, int what) { return load_of_block(factors + (what == 2 ? kWarpKeys : kWarpKeys + 1) * kRows + own, s); });
    __syncthreads();
  }
  const f32* const totals = kSplits > 1 ? of_blocks + kSplits * kRows : factors + kWarpKeys * kRows;
  for (int c = block * kThreads + threadIdx.x; c < kRows * kValueWidth; c += kSplits * kThreads) {
    const int r = c / kValueWidth, column = c % kValueWidth;
    if (first_row + r >= x.queries) continue;
    f32 sum = kSplits > 1 ? 0 : sum_of_warps(r, column);
    #pragma unroll
    for (int s = 0; s < (kSplits > 1 ? kSplits : 0); ++s) sum += load_of_block(all + r * kSumStride + column, s) * of_blocks[s * kRows + r];
    const f32 empty = kEmptyIsNan ? __int_as_float(0x7fc00000) : 0;
    store_half(result + result_place(x, batch, first_row + r, column), totals[r] == 0 ? empty : sum / totals[r]);
  }
  if (kSplits > 1) synchronize_cluster();
  else __syncthreads();
}

DEVICE void attend(char* shared, int block, const Mask* mask, u16* result, idx batch, idx first_row, const Operands& x) {
  u16* const q = (u16*)shared;
  u16* const k = q + kRows * kStride;
  u16* const v = k + 2 * kKeys * kStride;
  const idx seen = kCausal ? least(x.keys, first_row + kRows) : x.keys;
  const int all = (int)((seen + kKeys - 1) / kKeys), begin = all * block / kSplits, end = all * (block + 1) / kSplits;
  Rows rows = {};
  rows.most[0] = rows.most[1] = -__int_as_float(0x7f800000);
  copy_rows(q, kStride, kWidth, kRows, first_row, x.queries, q_place, batch, x);
  const auto copy_part = [&](int part) {
    const idx first = (idx)part * kKeys;
    copy_rows(k + part % 2 * kKeys * kStride, kStride, kWidth, kKeys, first, x.keys, k_place, batch, x);
    copy_rows(v + part % 2 * kKeys * kValueStride, kValueStride, kValueWidth, kKeys, first, x.keys, v_place, batch, x);
  };
  for (int part = begin; part < begin + 2; ++part) {
    if (part < end) copy_part(part);
    commit_copies();
  }
  for (int part = begin; part < end; ++part) {
    wait_for_copies<1>();
    __syncthreads();
    attend_part(rows, q, k + part % 2 * kKeys * kStride, v + part % 2 * kKeys * kValueStride, first_row, (idx)part * kKeys, mask, batch, x);
    __syncthreads();
    if (part + 2 < end) copy_part(part + 2);
    commit_copies();
  }
  wait_for_copies<0>();
  __syncthreads();
  merge(shared, block, rows, result, batch, first_row, x);
}
)cuda";

}  // namespace

std::string_view attention_body() { return kAttention; }

}  // namespace ingot::core::cuda
