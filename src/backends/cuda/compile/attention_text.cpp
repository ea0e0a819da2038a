// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/attention_text.h"

#include <fmt/core.h>

#include "backends/cuda/compile/attention_merge_text.h"
#include "backends/cuda/compile/group_attention_text.h"

namespace ingot::core::cuda {
namespace {

constexpr std::string_view kTilesOfWarps = R"cuda(
constexpr int kRows = kWarpRows * 16, kThreads = 128, kOwnKeys = kKeys / kWarpKeys, kSumStride = kValueWidth + 4, kReaders = 0, kWarpsOfCopier = 4;
)cuda";

constexpr std::string_view kTilesOfGroups = R"cuda(
constexpr int kRows = kGroups * 64, kThreads = kGroups * kKeyGroups * 128, kReaders = kGroups * 4, kWarpsOfCopier = kGroups * 4, kRowPlaces = kRowTiles > 1 ? 2 : 1;
)cuda";

constexpr std::string_view kTilePanels = R"cuda(
constexpr int kPanel = 8 * kChunk, kPanels = (kWidth + kPanel - 1) / kPanel, kValuePanels = (kValueWidth + kPanel - 1) / kPanel;
constexpr int kRowPanels = kReaders > 0 && kValuePanels > kPanels ? kValuePanels : kPanels;  // groups of warps gather results there
constexpr int kRowTile = kRows * kPanels * kPanel, kRowPlace = kRows * kRowPanels * kPanel, kKeyTile = kKeys * kPanels * kPanel, kValueTile = kKeys * kValuePanels * kPanel;
)cuda";

// Rows are in panels of 128 bytes with the 128-byte swizzle, which bulk copies write and which keeps the
// rows of a fragment in different banks.
constexpr std::string_view kRowFunctions = R"cuda(
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

// New rows of a cache: the cache as it was is copied before the kernel waits for the one before, and rows are
// replaced in shared memory.
constexpr std::string_view kNewRowParts = R"cuda(
constexpr int kRowChunks = (kWidth + kValueWidth) / kChunk, kNewChunks = kNewRows * kRowChunks, kOwnChunks = (kNewChunks + kThreads - 1) / kThreads;
struct NewChunks {
  uint4 numbers[kOwnChunks];
  i64 keys[kOwnChunks];  // -1: none
  __device__ __forceinline__ void load(idx batch, const Operands& x) {
    #pragma unroll
    for (int j = 0; j < kOwnChunks; ++j) {
      const int i = least((int)threadIdx.x + j * kThreads, kNewChunks - 1), row = i / kRowChunks, column = i % kRowChunks * kChunk;
      const Element* const from = column < kWidth ? new_k_place(x, batch, row) + column : new_v_place(x, batch, row) + column - kWidth;
      if (x.aligned) numbers[j] = *(const uint4*)from;
      else for (int e = 0; e < kChunk; ++e) ((Element*)&numbers[j])[e] = from[e];
      keys[j] = threadIdx.x + j * kThreads < kNewChunks ? x.positions[row] : -1;
      for (int later = row + 1; kNewRows > 1 && later < kNewRows; ++later)
        if (keys[j] == x.positions[later]) keys[j] = -1;
    }
  }
  __device__ __forceinline__ void put(Element* k, Element* v, idx first_key, bool last) {  // the last part that lies there
    #pragma unroll
    for (int j = 0; j < kOwnChunks; ++j) {
      const int column = (threadIdx.x + j * kThreads) % kRowChunks * kChunk;
      const i64 row = keys[j] - first_key;
      if (keys[j] < 0 || row < 0 || row >= kKeys) continue;
      *(uint4*)(column < kWidth ? chunk_of(k, kKeys, (int)row, column / kChunk) : chunk_of(v, kKeys, (int)row, (column - kWidth) / kChunk)) = numbers[j];
    }
    if (!last) order_copies();
    __syncthreads();
  }
};
)cuda";
constexpr std::string_view kNoNewRows = R"cuda(
struct NewChunks {
  __device__ __forceinline__ void load(idx, const Operands&) {}
  __device__ __forceinline__ void put(Element*, Element*, idx, bool) {}
};
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

// A row's share -> shared memory; one row, eight columns at a time, of all warps' shares.
DEVICE void keep_rows(f32* sums, const Rows& rows) {
  const int lane = threadIdx.x % 32, share = threadIdx.x / 32 % kWarpKeys, own = threadIdx.x / 32 / kWarpKeys * 16 + lane / 4;
  #pragma unroll
  for (int h = 0; h < 2; ++h) {
    f32* const row = sums + share * kNumbers + (own + h * 8) * kSumStride;
    #pragma unroll
    for (int n = 0; n < kValueWidth / 8; ++n)
      #pragma unroll
      for (int e = 0; e < 2; ++e) row[n * 8 + lane % 4 * 2 + e] = rows.values[n][2 * h + e];
    if (lane % 4 == 0) row[kValueWidth] = rows.most[h], row[kValueWidth + 1] = rows.total[h];
  }
  __syncthreads();
}
)cuda";

constexpr std::string_view kWarpAttend = R"cuda(
DEVICE void attend(char* shared, int block, Cluster& cluster, bool last, Arrivals& arrivals, const Maps& maps, const Mask* mask, Element* result, idx batch, idx first_row, const Operands& x) {
  Element* const q = (Element*)shared;
  const auto k_of = [&](int slot) { return q + kRowPlace + slot * (kKeyTile + kValueTile); };
  const idx seen = kCausal ? least(x.keys, first_row + kRows) : x.keys;
  const int all = (int)((seen + kKeys - 1) / kKeys), begin = all * block / kSplits, parts = all * (block + 1) / kSplits - begin;
  const auto key_of = [&](int part) { return (idx)(begin + part) * kKeys; };
  Rows rows = {};
  rows.most[0] = rows.most[1] = minus_infinity();
  const auto copy_part = [&](int part) {
    Element* const k = k_of(part % kStages);
    if (kBulk && x.aligned) return arrivals.copy(part, part == 0 && kNewRows == 0 ? q : nullptr, k, k + kKeyTile, maps, batch, first_row, key_of(part), x);
    if (part == 0 && kNewRows == 0) copy_rows(q, kWidth, kRows, first_row, x.queries, q_place, batch, x);
    copy_rows(k, kWidth, kKeys, key_of(part), x.keys, k_place, batch, x);
    copy_rows(k + kKeyTile, kValueWidth, kKeys, key_of(part), x.keys, v_place, batch, x);
  };
  for (int part = 0; part < kStages; ++part) {
    if (part < parts) copy_part(part);
    commit_copies();
  }
  NewChunks fresh;
  Scores biases;
  if (kNewRows > 0) {
    if (kKeysAreOld) wait_for_previous();
    copy_rows(q, kWidth, kRows, first_row, x.queries, q_place, batch, x);
    commit_copies();
    fresh.load(batch, x);
    biases = biases_of(first_row, key_of(0), mask, batch, x);
    wait_for_copies<0>();
    __syncthreads();
  }
  for (int part = 0; part < parts; ++part) {
    if (kNewRows == 0 || part > 0) biases = biases_of(first_row, key_of(part), mask, batch, x);
    if (kBulk && x.aligned) arrivals.wait(part);
    else {
      wait_for_copies<kStages - 1>();
      __syncthreads();
    }
    Element* const k = k_of(part % kStages);
    fresh.put(k, k + kKeyTile, key_of(part), part + kStages >= parts);
    attend_part(rows, q, k, k + kKeyTile, biases);
    if (part + kStages < parts) {
      __syncthreads();
      copy_part(part + kStages);
    }
    commit_copies();
  }
  arrivals.used += parts;
  __syncthreads();
  cluster.merge(shared, block, rows, result, batch, first_row, last, x);
}
)cuda";

// Bulk copies of parts, issued by one thread (of those that read the part); where warps do not run in step,
// as soon as each of kReaders has released the part that was there before.
constexpr std::string_view kBulkArrivals = R"cuda(
constexpr bool kBulk = true;
DEVICE bool is_in_copying_warp() { return uniform(threadIdx.x / 32) % kWarpsOfCopier == 0; }
DEVICE void order_copies() { order_shared_memory(); }
struct Maps {
  const TensorMap *q, *k, *v;
};
struct Arrivals {
  u32 barriers;  // of full and of free parts, kStages each, and of queries after the first of a tile
  int used;      // parts of earlier tiles
  u32 rows_phase;
  __device__ __forceinline__ u32 barrier(int part) { return barriers + (used + part) % kStages * 8; }
  __device__ __forceinline__ void begin(char* place, const Maps& maps, bool aligned) {
    barriers = shared_address(place);
    used = 0;
    rows_phase = 0;
    if (threadIdx.x == 0) {
      if (aligned) fetch_map(maps.q), fetch_map(maps.k), fetch_map(maps.v);
      for (int s = 0; s < kStages; ++s) make_barrier(barriers + s * 8, 1);
      for (int s = 0; s < kStages && kReaders > 0; ++s) make_barrier(barriers + (kStages + s) * 8, kReaders);
      if (kRowTiles > 1) make_barrier(barriers + 2 * kStages * 8, 1);
      show_barriers();
    }
    __syncthreads();
  }
  __device__ __forceinline__ void copy(int part, Element* q, Element* k, Element* v, const Maps& maps, idx batch, idx first_row, idx first_key, const Operands& x) {
    if (!is_in_copying_warp() || !is_elected()) return;
    if (kReaders > 0 && used + part >= kStages) wait_for_phase(barrier(part) + kStages * 8, (used + part) / kStages - 1 & 1);
    arrive_and_expect(barrier(part), ((q == nullptr ? 0 : kRowTile) + kKeyTile + kValueTile) * 2);
    for (int p = 0; p < kPanels; ++p) {
      if (q != nullptr) copy_q_box(q + p * kRows * kPanel, barrier(part), maps.q, x, batch, first_row, p * kPanel);
      copy_k_box(k + p * kKeys * kPanel, barrier(part), maps.k, x, batch, first_key, p * kPanel);
    }
    for (int p = 0; p < kValuePanels; ++p) copy_v_box(v + p * kKeys * kPanel, barrier(part), maps.v, x, batch, first_key, p * kPanel);
  }
  __device__ __forceinline__ void copy_rows(Element* q, const Maps& maps, idx batch, idx first_row, const Operands& x) {
    if (!is_in_copying_warp() || !is_elected()) return;
    const u32 rows = barriers + 2 * kStages * 8;
    arrive_and_expect(rows, kRowTile * 2);
    for (int p = 0; p < kPanels; ++p) copy_q_box(q + p * kRows * kPanel, rows, maps.q, x, batch, first_row, p * kPanel);
  }
  __device__ __forceinline__ void wait_for_rows() { wait_for_phase(barriers + 2 * kStages * 8, rows_phase), rows_phase ^= 1; }
  __device__ __forceinline__ void wait(int part) { wait_for_phase(barrier(part), (used + part) / kStages & 1); }
  __device__ __forceinline__ void release(int part) { if (threadIdx.x % 32 == 0) arrive(barrier(part) + kStages * 8); }
};
)cuda";

constexpr std::string_view kNoArrivals = R"cuda(
constexpr bool kBulk = false;
DEVICE void order_copies() {}
struct Maps {};
struct Arrivals {
  int used;
  __device__ __forceinline__ void begin(char*, const Maps&, bool) { used = 0; }
  template <class... T> __device__ __forceinline__ void copy(T...) {}
  __device__ __forceinline__ void wait(int) {}
};
)cuda";

}  // namespace

std::string attention_body(const WarpAttention& form) {
  return fmt::format("{}{}{}{}{}{}{}{}{}{}{}{}", kTilesOfWarps, kTilePanels,
                     form.by_bulk_copies ? kBulkArrivals : kNoArrivals, score_functions(), kRowFunctions,
                     kWarpParts, form.products, form.has_new_rows ? kNewRowParts : kNoNewRows, row_sums(),
                     kWarpAttention, merge_of_shares(form.splits), kWarpAttend);
}

std::string group_attention_body(GroupMask mask) {
  return fmt::format("{}{}{}{}{}{}{}", kTilesOfGroups, kTilePanels, kBulkArrivals, score_functions(),
                     kRowFunctions, no_merge(), group_attention(mask));
}

}  // namespace ingot::core::cuda
