// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/register_attention_text.h"

#include <fmt/core.h>

#include "backends/cuda/compile/attention_merge_text.h"

namespace ingot::core::cuda {
namespace {

//   for part of the keys, kKeys at a time, each warp with tiles of 16:
//     keys and values -> registers (old ones of the first part: before the kernel waits for the one before)
//     queries and new rows, copied, or computed in shared memory -> registers
//     scores = keys x queries; running maximum; exponentials
//     results^T += values^T x exponentials
//   shares of the keys, of warps and of blocks of a cluster, are merged in order
// With so few queries a kernel takes as long as its instructions: tensor cores take the fewest. Products are
// of 16 keys or columns by eight queries, most of which do not exist. Blocks are small: those of the next
// kernels start beside them.
//
// A lane has 16 bytes of every 64 of the rows of keys lane / 4 and that + 8. Which column of a product's
// depth an element is does not matter where keys and queries agree. Of values, 8 x 8 elements that lie so in
// the lanes' registers are transposed there (movmatrix).
constexpr std::string_view kParts = R"cuda(
constexpr int kRows = kFewRows, kThreads = kWarpKeys * 32, kSumStride = kValueWidth + 4, kOwnKeys = kKeys / kWarpKeys, kTiles = kOwnKeys / 16, kPieces = kWidth / 32;
static_assert(kWidth == kValueWidth && kRows <= 8, "as rank_tactics has it");
struct Maps {};
struct Arrivals {
  __device__ __forceinline__ void begin(char*, const Maps&, bool) {}
};

typedef Packed Piece[kPieces];  // a lane's of a row
template <bool aligned> DEVICE void load_piece(Piece& piece, const Element* row) {
  #pragma unroll
  for (int c = 0; c < kPieces; ++c) {
    const Element* const from = row + (c * 4 + threadIdx.x % 4) * 8;
    if (aligned) piece[c] = load_once(from);
    else load_group(piece[c], from, 8);
  }
}
DEVICE void take_piece(Piece& piece, const Element* row) {  // of shared memory
  #pragma unroll
  for (int c = 0; c < kPieces; ++c) piece[c] = *(const Packed*)(row + (c * 4 + threadIdx.x % 4) * 8);
}
DEVICE idx key_of_lane(idx first_key, int tile, int half) { return first_key + threadIdx.x / 32 * kOwnKeys + tile * 16 + half * 8 + threadIdx.x % 32 / 4; }

typedef Piece Part[kTiles][2];
template <bool aligned> DEVICE void load_part(Part& part, const Element* (*place)(const Operands&, idx, idx), idx batch, idx first_key, const Operands& x) {
  #pragma unroll
  for (int t = 0; t < kTiles; ++t)
    #pragma unroll
    for (int h = 0; h < 2; ++h) {
      const idx key = key_of_lane(first_key, t, h);
      if (key < x.keys) load_piece<aligned>(part[t][h], place(x, batch, key));
      else
        #pragma unroll
        for (int c = 0; c < kPieces; ++c) part[t][h][c] = Packed{};
    }
}

// Queries lane % 4 * 2 and the next; `values`: of each two pairs of neighbours in a piece, columns by queries.
struct Rows {
  f32 values[kPieces * 2][4], most[2], total[2];
};
template <class Op> DEVICE f32 reduce_keys(f32 v) {  // over the lanes that have the same queries
  #pragma unroll
  for (int o = 4; o < 32; o *= 2) v = Op::apply(v, __shfl_xor_sync(~0u, v, o));
  return v;
}
)cuda";

constexpr std::string_view kKeepRows = R"cuda(
// A warp's share -> shared memory.
DEVICE void keep_rows(f32* sums, const Rows& rows) {
  const int lane = threadIdx.x % 32;
  #pragma unroll
  for (int e = 0; e < 2; ++e) {
    const f32 total = reduce_keys<Add>(rows.total[e]);
    const int r = lane % 4 * 2 + e;
    f32* const row = sums + threadIdx.x / 32 * kNumbers + r * kSumStride;
    if (r >= kRows) continue;
    #pragma unroll
    for (int c = 0; c < kPieces * 2; ++c)
      #pragma unroll
      for (int p = 0; p < 2; ++p) row[(c / 2 * 4 + lane / 8) * 8 + c % 2 * 4 + p * 2 + lane / 4 % 2] = rows.values[c][p * 2 + e];
    if (lane < 4) row[kValueWidth] = rows.most[e], row[kValueWidth + 1] = total;
  }
  __syncthreads();
}
)cuda";

constexpr std::string_view kWithNewRows = R"cuda(
template <bool aligned> struct NewRows {
  Piece k[kNewRows], v[kNewRows];
  i64 positions[kNewRows];
  __device__ __forceinline__ void load(idx batch, const Operands& x) {
    #pragma unroll
    for (int n = 0; n < kNewRows; ++n) {
      positions[n] = x.positions[n];
      if (kNewKeysAt < 0) load_piece<aligned>(k[n], new_k_place(x, batch, n));
      if (kNewValuesAt < 0) load_piece<aligned>(v[n], new_v_place(x, batch, n));
    }
  }
  __device__ __forceinline__ void take_computed(const Element* computed) {
    #pragma unroll
    for (int n = 0; n < kNewRows; ++n) {
      if (kNewKeysAt >= 0) take_piece(k[n], computed + kNewKeysAt + n * kWidth);
      if (kNewValuesAt >= 0) take_piece(v[n], computed + kNewValuesAt + n * kWidth);
    }
  }
  __device__ __forceinline__ void put(Part& keys, Part& values, idx first_key, idx end) {  // the last of a position counts
    #pragma unroll
    for (int n = 0; n < kNewRows; ++n)
      #pragma unroll
      for (int i = 0; i < kTiles * 2; ++i)
        if (key_of_lane(first_key, i / 2, i % 2) == positions[n] && positions[n] < end)
          #pragma unroll
          for (int c = 0; c < kPieces; ++c) keys[i / 2][i % 2][c] = k[n][c], values[i / 2][i % 2][c] = v[n][c];
  }
};
)cuda";

constexpr std::string_view kWithoutNewRows = R"cuda(
template <bool aligned> struct NewRows {
  __device__ __forceinline__ void load(idx, const Operands&) {}
  __device__ __forceinline__ void take_computed(const Element*) {}
  __device__ __forceinline__ void put(Part&, Part&, idx, idx) {}
};
)cuda";

constexpr std::string_view kAttend = R"cuda(
typedef f32 Scores[kTiles][4];  // keys lane / 4 and that + 8 by two queries
DEVICE void load_biases(Scores& biases, idx first_key, const Mask* mask, idx batch, const Operands& x) {
  #pragma unroll
  for (int t = 0; t < kTiles; ++t)
    #pragma unroll
    for (int e = 0; e < 4; ++e) biases[t][e] = bias_at(mask, batch, threadIdx.x % 4 * 2 + e % 2, key_of_lane(first_key, t, e / 2), x);
}

DEVICE void multiply_keys(Scores& scores, const Part& keys, const Piece& query) {
  #pragma unroll
  for (int t = 0; t < kTiles; ++t)
    #pragma unroll
    for (int c = 0; c < kPieces; ++c)
      #pragma unroll
      for (int p = 0; p < 4; p += 2) {
        const u32 a[4] = {keys[t][0][c].pairs[p], keys[t][1][c].pairs[p], keys[t][0][c].pairs[p + 1], keys[t][1][c].pairs[p + 1]};
        multiply_fragments<kBf16>(scores[t], a, query[c].pairs[p], query[c].pairs[p + 1]);
      }
}

DEVICE void weigh(Rows& rows, Scores& scores, const Scores& biases) {
  #pragma unroll
  for (int e = 0; e < 2; ++e) {
    f32 most = rows.most[e], sum = 0;
    #pragma unroll
    for (int i = 0; i < kTiles * 2; ++i) {
      f32& score = scores[i / 2][i % 2 * 2 + e];
      const f32 bias = biases[i / 2][i % 2 * 2 + e];
      score = bias == minus_infinity() ? bias : score * kScale + bias;
      most = fmaxf(most, score);
    }
    most = reduce_keys<Largest>(most);
    const f32 factor = weight_of(rows.most[e], most);
    rows.most[e] = most;
    #pragma unroll
    for (int i = 0; i < kTiles * 2; ++i) {
      f32& score = scores[i / 2][i % 2 * 2 + e];
      sum += score = weight_of(score, most);
    }
    rows.total[e] = rows.total[e] * factor + sum;
    #pragma unroll
    for (int c = 0; c < kPieces * 2; ++c) rows.values[c][e] *= factor, rows.values[c][2 + e] *= factor;
  }
}

DEVICE u32 transpose(u32 pair) {
  u32 r;
  asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(r) : "r"(pair));
  return r;
}
DEVICE u32 pack_halves(f32 low, f32 high) { return kBf16 ? pack_bf16(low, high) : pack_f16(low, high); }

DEVICE void multiply_values(Rows& rows, const Scores& weights, const Part& values) {
  #pragma unroll
  for (int t = 0; t < kTiles; ++t) {
    const u32 b0 = transpose(pack_halves(weights[t][0], weights[t][1])), b1 = transpose(pack_halves(weights[t][2], weights[t][3]));
    #pragma unroll
    for (int c = 0; c < kPieces * 2; ++c) {
      const int p = c % 2 * 2;
      const Packed &low = values[t][0][c / 2], &high = values[t][1][c / 2];
      const u32 a[4] = {transpose(low.pairs[p]), transpose(low.pairs[p + 1]), transpose(high.pairs[p]), transpose(high.pairs[p + 1])};
      multiply_fragments<kBf16>(rows.values[c], a, b0, b1);
    }
  }
}
)cuda";

constexpr std::string_view kAttendAll = R"cuda(
template <bool aligned> DEVICE void attend_rows(Rows& rows, Element* computed, int block, const Mask* mask, idx batch, const Operands& x) {
  const int all = (int)((x.keys + kKeys - 1) / kKeys), begin = all * block / kSplits, end = all * (block + 1) / kSplits;
  // A block without keys computes with keys beyond all: a loop that may not run at all would have the loads of
  // new rows in it, behind the wait for biases.
  idx first_key = begin < end ? (idx)begin * kKeys : x.keys;
  Part keys, values;
  load_part<aligned>(keys, k_place, batch, first_key, x);
  load_part<aligned>(values, v_place, batch, first_key, x);
  if (kKeysAreOld) wait_for_previous();
  Piece query = {};
  const int own = threadIdx.x % 32 / 4;
  if (kQueriesAt < 0 && own < kRows) load_piece<aligned>(query, q_place(x, batch, own));
  NewRows<aligned> fresh;
  fresh.load(batch, x);
  Scores biases;
  load_biases(biases, first_key, mask, batch, x);
  if (kComputedElements > 0) {  // what is loaded besides is on its way
    compute_rows(computed, batch, x);
    __syncthreads();  // those of the tile before were read before its shares were merged
    if (kQueriesAt >= 0 && own < kRows) take_piece(query, computed + kQueriesAt + own * kWidth);
    fresh.take_computed(computed);
  }
  int part = begin;
  bool has_next;
  do {
    has_next = ++part < end;
    Scores scores = {};
    fresh.put(keys, values, first_key, x.keys);
    multiply_keys(scores, keys, query);
    if (has_next) load_part<aligned>(keys, k_place, batch, first_key + kKeys, x);
    weigh(rows, scores, biases);
    multiply_values(rows, scores, values);
    if (has_next) {
      load_part<aligned>(values, v_place, batch, first_key + kKeys, x);
      load_biases(biases, first_key += kKeys, mask, batch, x);
    }
  } while (has_next);
}

DEVICE void attend(char* shared, int block, Cluster& cluster, bool last, Arrivals&, const Maps&, const Mask* mask, Element* result, idx batch, idx first_row, const Operands& x) {
  Rows rows = {};
  rows.most[0] = rows.most[1] = minus_infinity();
  Element* const computed = (Element*)(shared + kComputed);
  if (x.aligned) attend_rows<true>(rows, computed, block, mask, batch, x);
  else attend_rows<false>(rows, computed, block, mask, batch, x);
  cluster.merge(shared, block, rows, result, batch, first_row, last, x);
}
)cuda";

constexpr std::string_view kLargest = R"cuda(
struct Largest { DEVICE f32 apply(f32 a, f32 b) { return fmaxf(a, b); } };
)cuda";

}  // namespace

std::string register_attention_body(int splits, bool has_new_rows) {
  return fmt::format("{}{}{}{}{}{}{}{}{}", score_functions(), kLargest, kParts, row_sums(), kKeepRows,
                     has_new_rows ? kWithNewRows : kWithoutNewRows, kAttend, merge_of_shares(splits),
                     kAttendAll);
}

}  // namespace ingot::core::cuda
