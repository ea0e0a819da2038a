// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/attention_text.h"

#include <fmt/core.h>

#include "backends/cuda/compile/group_attention_text.h"

namespace ingot::core::cuda {
namespace {

constexpr std::string_view kTilesOfWarps = R"cuda(
constexpr int kRows = kWarpRows * 16, kThreads = 128, kOwnKeys = kKeys / kWarpKeys, kSumStride = kValueWidth + 4, kReaders = 0;
)cuda";

constexpr std::string_view kTilesOfGroups = R"cuda(
constexpr int kRows = kGroups * 64, kThreads = kGroups * 128, kReaders = kGroups * 4;
)cuda";

constexpr std::string_view kTilePanels = R"cuda(
constexpr int kPanel = 8 * kChunk, kPanels = (kWidth + kPanel - 1) / kPanel, kValuePanels = (kValueWidth + kPanel - 1) / kPanel;
constexpr int kRowPanels = kReaders > 0 && kValuePanels > kPanels ? kValuePanels : kPanels;  // groups of warps gather results there
constexpr int kRowTile = kRows * kPanels * kPanel, kRowPlace = kRows * kRowPanels * kPanel, kKeyTile = kKeys * kPanels * kPanel, kValueTile = kKeys * kValuePanels * kPanel;
)cuda";

// Rows are in panels of 128 bytes with the 128-byte swizzle, which bulk copies write and which keeps the
// rows of a fragment in different banks.
constexpr std::string_view kRowFunctions = R"cuda(
DEVICE f32 minus_infinity() { return -__int_as_float(0x7f800000); }
DEVICE f32 power_of_two(f32 v) { f32 r; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v)); return r; }
// e^(v - most), where -infinity is all there is: 0
DEVICE f32 weight_of(f32 v, f32 most) { return power_of_two((v - (most == minus_infinity() ? 0 : most)) * 1.44269504f); }
DEVICE f32 largest_of_row(f32 v) { v = fmaxf(v, __shfl_xor_sync(~0u, v, 1)); return fmaxf(v, __shfl_xor_sync(~0u, v, 2)); }
DEVICE f32 sum_of_row(f32 v) { v += __shfl_xor_sync(~0u, v, 1); return v + __shfl_xor_sync(~0u, v, 2); }
// 16 bytes of a row of a tile with so many rows.
DEVICE Element* chunk_of(Element* tile, int rows, int row, int chunk) { return tile + chunk / 8 * rows * kPanel + row * kPanel + (chunk % 8 ^ row % 8) * kChunk; }

DEVICE void copy_rows(Element* to, int width, int rows, idx first, idx end, const Element* (*place)(const Operands&, idx, idx), idx batch, const Operands& x) {
  for (int c = threadIdx.x; c < rows * (width / kChunk); c += kThreads) {
    const int row = c / (width / kChunk), chunk = c % (width / kChunk);
    const bool valid = first + row < end;
    const Element* const from = valid ? place(x, batch, first + row) + chunk * kChunk : x.q;
    Element* const into = chunk_of(to, rows, row, chunk);
    if (x.aligned) copy_chunk(into, from, valid);
    else for (int i = 0; i < kChunk; ++i) into[i] = valid ? from[i] : (Element)0;
  }
}
// What is added to a score; -infinity for what may not be seen.
DEVICE f32 bias_at(const Mask* mask, idx batch, idx row, idx key, const Operands& x) { return key < x.keys && row < x.queries ? bias_of(x, mask, batch, row, key) : minus_infinity(); }
)cuda";

//   for part of the keys, kKeys at a time, kStages of them being copied:
//     each warp: scores of its 16 rows and its share of the part; running maximum; exponentials; these times
//     values
//   shares of the keys, of warps and of blocks of a cluster, are merged in order (online softmax: Milakov and
//   Gimelshein 2018; tiles: Dao et al. 2022)
constexpr std::string_view kWarpParts = R"cuda(
struct Rows {  // a lane's part of 16 rows: rows lane / 4 and that + 8
  f32 values[kValueWidth / 8][4], most[2], total[2];
};
struct Scores {
  f32 each[kOwnKeys / 8][4];
};

DEVICE Scores biases_of(idx first_row, idx first_key, const Mask* mask, idx batch, const Operands& x) {
  const int lane = threadIdx.x % 32, own = threadIdx.x / 32 % kWarpKeys * kOwnKeys, warp_row = threadIdx.x / 32 / kWarpKeys * 16;
  Scores biases;
  #pragma unroll
  for (int j = 0; j < kOwnKeys / 8; ++j)
    #pragma unroll
    for (int e = 0; e < 4; ++e) {
      const idx row = first_row + warp_row + lane / 4 + e / 2 * 8, key = first_key + own + j * 8 + lane % 4 * 2 + e % 2;
      biases.each[j][e] = bias_at(mask, batch, row, key, x);
    }
  return biases;
}

)cuda";

constexpr std::string_view kWarpAttention = R"cuda(
DEVICE void attend_part(Rows& rows, Element* q, Element* k, Element* v, const Scores& biases) {
  const int lane = threadIdx.x % 32, own = threadIdx.x / 32 % kWarpKeys * kOwnKeys, warp_row = threadIdx.x / 32 / kWarpKeys * 16;
  Scores scores = {};
  multiply_scores(scores, q, k, warp_row, own);
  f32 factor[2];
  #pragma unroll
  for (int h = 0; h < 2; ++h) {
    f32 most = rows.most[h], sum = 0;
    #pragma unroll
    for (int j = 0; j < kOwnKeys / 8; ++j)
      #pragma unroll
      for (int e = 2 * h; e < 2 * h + 2; ++e) {
        f32& score = scores.each[j][e];
        const f32 bias = biases.each[j][e];
        score = bias == minus_infinity() ? bias : score * kScale + bias;
        most = fmaxf(most, score);
      }
    most = largest_of_row(most);
    factor[h] = weight_of(rows.most[h], most);
    rows.most[h] = most;
    #pragma unroll
    for (int j = 0; j < kOwnKeys / 8; ++j)
      #pragma unroll
      for (int e = 2 * h; e < 2 * h + 2; ++e) sum += scores.each[j][e] = weight_of(scores.each[j][e], most);
    rows.total[h] = rows.total[h] * factor[h] + sum_of_row(sum);
  }
  #pragma unroll
  for (int n = 0; n < kValueWidth / 8; ++n)
    #pragma unroll
    for (int e = 0; e < 4; ++e) rows.values[n][e] *= factor[e / 2];
  multiply_values(rows.values, scores, v, own);
}

// The largest score and the total of a row, of `count` shares of its keys.
template <class Load> DEVICE void merge_shares(f32& most, f32& total, int count, const Load& most_and_total) {
  most = minus_infinity(), total = 0;
  for (int s = 0; s < count; ++s) most = fmaxf(most, most_and_total(s, 0));
  for (int s = 0; s < count; ++s) total += most_and_total(s, 1) * weight_of(most_and_total(s, 0), most);
}

// Adds up the shares of the warps, then of the blocks of a cluster, and stores the rows.
DEVICE void merge(char* shared, int block, Rows& rows, Element* result, idx batch, idx first_row, const Operands& x) {
  constexpr int kNumbers = kRows * kSumStride;
  f32* const values = (f32*)shared;                  // [kWarpKeys][kRows][kSumStride]
  f32* const marks = values + kWarpKeys * kNumbers;  // largest scores and totals, [kWarpKeys + 1][2][kRows], the last those of the block
  f32* const of_block = marks + kWarpKeys * 2 * kRows;
  const int lane = threadIdx.x % 32, share = threadIdx.x / 32 % kWarpKeys, row = threadIdx.x / 32 / kWarpKeys * 16 + lane / 4;
  if (lane % 4 == 0)
    #pragma unroll
    for (int h = 0; h < 2; ++h) {
      marks[share * 2 * kRows + row + h * 8] = rows.most[h];
      marks[(share * 2 + 1) * kRows + row + h * 8] = rows.total[h];
    }
  __syncthreads();
  #pragma unroll
  for (int h = 0; h < 2; ++h) {
    f32 most, total;
    merge_shares(most, total, kWarpKeys, [&](int s, int what) { return marks[(s * 2 + what) * kRows + row + h * 8]; });
    const f32 factor = weight_of(rows.most[h], most);
    #pragma unroll
    for (int n = 0; n < kValueWidth / 8; ++n)
      #pragma unroll
      for (int e = 2 * h; e < 2 * h + 2; ++e) values[share * kNumbers + (row + h * 8) * kSumStride + n * 8 + lane % 4 * 2 + e % 2] = rows.values[n][e] * factor;
    if (share == 0 && lane % 4 == 0) {
      of_block[row + h * 8] = most;
      of_block[kRows + row + h * 8] = total;
    }
  }
  __syncthreads();
  if (kSplits > 1) {  // the block's sum takes the place of the first warp's
    for (int c = threadIdx.x; kWarpKeys > 1 && c < kRows * kValueWidth / 4; c += kThreads) {
      Four* const place = (Four*)(values + c / (kValueWidth / 4) * kSumStride + c % (kValueWidth / 4) * 4);
      Four all = *place;
      #pragma unroll
      for (int s = 1; s < kWarpKeys; ++s)
        #pragma unroll
        for (int e = 0; e < 4; ++e) all.numbers[e] += ((Four*)((f32*)place + s * kNumbers))->numbers[e];
      *place = all;
    }
    synchronize_cluster();
  }
  constexpr int kShares = kSplits == 1 ? kWarpKeys : kSplits;
  constexpr int kChunks = kRows * kValueWidth / 8;
  for (int c = block * kThreads + threadIdx.x; c < kChunks; c += kSplits * kThreads) {
    const int r = c / (kValueWidth / 8), column = c % (kValueWidth / 8) * 8;
    if (first_row + r >= x.queries) continue;
    f32 most, total, sums[8] = {};
    const auto mark = [&](int s, int what) { return kSplits == 1 ? of_block[what * kRows + r] : load_of_block(of_block + what * kRows + r, s); };
    merge_shares(most, total, kSplits, mark);
    #pragma unroll
    for (int s = 0; s < kShares; ++s) {
      const f32* const place = values + r * kSumStride + column;
      const f32 factor = kSplits == 1 ? 1 : weight_of(mark(s, 0), most);
      #pragma unroll
      for (int k = 0; k < 8; k += 4) {
        const Four four = kSplits == 1 ? *(const Four*)(place + s * kNumbers + k) : load_four_of_block(place + k, s);
        #pragma unroll
        for (int e = 0; e < 4; ++e) sums[k + e] += kSplits == 1 ? four.numbers[e] : four.numbers[e] * factor;
      }
    }
    #pragma unroll
    for (int k = 0; k < 8; ++k) sums[k] = total == 0 ? (kEmptyIsNan ? __int_as_float(0x7fc00000) : sums[k]) : sums[k] / total;  // without keys: 0, or NaN beside infinite values
    Element* const to = result + result_place(x, batch, first_row + r, column);
    if (kNeighbours && is_aligned(to)) store_eight<kBf16>(to, sums);
    else
      for (int k = 0; k < 8; ++k) store_element(result + result_place(x, batch, first_row + r, column + k), sums[k]);
  }
  if (kSplits > 1) synchronize_cluster();
  else __syncthreads();
}

DEVICE void attend(char* shared, int block, Arrivals& arrivals, const Maps& maps, const Mask* mask, Element* result, idx batch, idx first_row, const Operands& x) {
  Element* const q = (Element*)shared;
  const auto k_of = [&](int slot) { return q + kRowPlace + slot * (kKeyTile + kValueTile); };
  const idx seen = kCausal ? least(x.keys, first_row + kRows) : x.keys;
  const int all = (int)((seen + kKeys - 1) / kKeys), begin = all * block / kSplits, parts = all * (block + 1) / kSplits - begin;
  const auto key_of = [&](int part) { return (idx)(begin + part) * kKeys; };
  Rows rows = {};
  rows.most[0] = rows.most[1] = minus_infinity();
  const auto copy_part = [&](int part) {
    Element* const k = k_of(part % kStages);
    if (kBulk && x.aligned) return arrivals.copy(part, part == 0 ? q : nullptr, k, k + kKeyTile, maps, batch, first_row, key_of(part), x);
    if (part == 0) copy_rows(q, kWidth, kRows, first_row, x.queries, q_place, batch, x);
    copy_rows(k, kWidth, kKeys, key_of(part), x.keys, k_place, batch, x);
    copy_rows(k + kKeyTile, kValueWidth, kKeys, key_of(part), x.keys, v_place, batch, x);
  };
  for (int part = 0; part < kStages; ++part) {
    if (part < parts) copy_part(part);
    commit_copies();
  }
  for (int part = 0; part < parts; ++part) {
    const Scores biases = biases_of(first_row, key_of(part), mask, batch, x);
    if (kBulk && x.aligned) arrivals.wait(part);
    else {
      wait_for_copies<kStages - 1>();
      __syncthreads();
    }
    Element* const k = k_of(part % kStages);
    attend_part(rows, q, k, k + kKeyTile, biases);
    if (part + kStages < parts) {
      __syncthreads();
      copy_part(part + kStages);
    }
    commit_copies();
  }
  arrivals.used += parts;
  __syncthreads();
  merge(shared, block, rows, result, batch, first_row, x);
}
)cuda";

// Bulk copies of parts, issued by one thread; where warps do not run in step, as soon as each of kReaders has
// released the part that was there before.
constexpr std::string_view kBulkArrivals = R"cuda(
constexpr bool kBulk = true;
struct Maps {
  const TensorMap *q, *k, *v;
};
struct Arrivals {
  u32 barriers;  // of full and of free parts, kStages each
  int used;      // parts of earlier tiles
  __device__ __forceinline__ u32 barrier(int part) { return barriers + (used + part) % kStages * 8; }
  __device__ __forceinline__ void begin(char* place, const Maps& maps, bool aligned) {
    barriers = shared_address(place);
    used = 0;
    if (threadIdx.x == 0) {
      if (aligned) fetch_map(maps.q), fetch_map(maps.k), fetch_map(maps.v);
      for (int s = 0; s < kStages; ++s) make_barrier(barriers + s * 8, 1);
      for (int s = 0; s < kStages && kReaders > 0; ++s) make_barrier(barriers + (kStages + s) * 8, kReaders);
      show_barriers();
    }
    __syncthreads();
  }
  __device__ __forceinline__ void copy(int part, Element* q, Element* k, Element* v, const Maps& maps, idx batch, idx first_row, idx first_key, const Operands& x) {
    if (threadIdx.x != 0) return;
    if (kReaders > 0 && used + part >= kStages) wait_for_phase(barrier(part) + kStages * 8, (used + part) / kStages - 1 & 1);
    arrive_and_expect(barrier(part), ((q == nullptr ? 0 : kRowTile) + kKeyTile + kValueTile) * 2);
    for (int p = 0; p < kPanels; ++p) {
      if (q != nullptr) copy_q_box(q + p * kRows * kPanel, barrier(part), maps.q, x, batch, first_row, p * kPanel);
      copy_k_box(k + p * kKeys * kPanel, barrier(part), maps.k, x, batch, first_key, p * kPanel);
    }
    for (int p = 0; p < kValuePanels; ++p) copy_v_box(v + p * kKeys * kPanel, barrier(part), maps.v, x, batch, first_key, p * kPanel);
  }
  __device__ __forceinline__ void wait(int part) { wait_for_phase(barrier(part), (used + part) / kStages & 1); }
  __device__ __forceinline__ void release(int part) { if (threadIdx.x % 32 == 0) arrive(barrier(part) + kStages * 8); }
};
)cuda";

constexpr std::string_view kNoArrivals = R"cuda(
constexpr bool kBulk = false;
struct Maps {};
struct Arrivals {
  int used;
  __device__ __forceinline__ void begin(char*, const Maps&, bool) { used = 0; }
  template <class... T> __device__ __forceinline__ void copy(T...) {}
  __device__ __forceinline__ void wait(int) {}
};
)cuda";

}  // namespace

std::string attention_body(std::string_view products, bool by_bulk_copies) {
  return fmt::format("{}{}{}{}{}{}{}", kTilesOfWarps, kTilePanels,
                     by_bulk_copies ? kBulkArrivals : kNoArrivals, kRowFunctions, kWarpParts, products,
                     kWarpAttention);
}

std::string group_attention_body() {
  return fmt::format("{}{}{}{}{}", kTilesOfGroups, kTilePanels, kBulkArrivals, kRowFunctions,
                     group_attention());
}

}  // namespace ingot::core::cuda
