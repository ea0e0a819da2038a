// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/register_attention_text.h"

#include <fmt/core.h>

#include "backends/cuda/compile/attention_merge_text.h"

namespace ingot::core::cuda {
namespace {

//   for part of the keys, kKeys at a time, of which each thread has eight columns of kOwn keys:
//     keys and values -> registers (old ones of the first part: before the kernel waits for the one before)
//     scores of kRows queries: sums over the kLanes threads of a key; running maximum; exponentials
//     exponentials times values
//   shares of the keys, of threads, of warps and of blocks of a cluster, are merged in order
// Arithmetic takes far less time than the loads. Blocks are small: those of the next kernels start beside
// them.
constexpr std::string_view kParts = R"cuda(
constexpr int kRows = kFewRows, kThreads = kWarpKeys * 32, kSumStride = kValueWidth + 4, kLanes = kWidth / 8, kAtOnce = kThreads / kLanes, kOwn = kKeys / kAtOnce;
struct Maps {};
struct Arrivals {
  __device__ __forceinline__ void begin(char*, const Maps&, bool) {}
};

DEVICE Packed load_eight(const Element* from, bool aligned) {
  if (aligned) return load_once(from);
  Packed eight;
  load_group(eight, from, 8);
  return eight;
}
DEVICE int first_column() { return threadIdx.x % kLanes * 8; }
DEVICE idx key_of_thread(idx first_key, int i) { return first_key + i * kAtOnce + threadIdx.x / kLanes; }

typedef Packed Part[kOwn];
DEVICE void load_part(Part& part, const Element* (*place)(const Operands&, idx, idx), idx batch, idx first_key, const Operands& x) {
  #pragma unroll
  for (int i = 0; i < kOwn; ++i) {
    const idx key = key_of_thread(first_key, i);
    part[i] = key < x.keys ? load_eight(place(x, batch, key) + first_column(), x.aligned) : Packed{};
  }
}

struct Rows {
  f32 values[kRows][8], most[kRows], total[kRows];
};

template <int first, int end> DEVICE f32 sum_of_lanes(f32 v) {
  #pragma unroll
  for (int o = first; o < end; o *= 2) v += __shfl_xor_sync(~0u, v, o);
  return v;
}
)cuda";

constexpr std::string_view kKeepRows = R"cuda(
// A row's share -> shared memory; one row, eight columns at a time, of all warps' shares.
DEVICE void keep_rows(f32* sums, const Rows& rows) {
  #pragma unroll
  for (int r = 0; r < kRows; ++r) {
    f32 most = rows.most[r];
    #pragma unroll
    for (int o = kLanes; o < 32; o *= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, o));
    const f32 factor = weight_of(rows.most[r], most), total = sum_of_lanes<kLanes, 32>(rows.total[r] * factor);
    f32 values[8];
    #pragma unroll
    for (int k = 0; k < 8; ++k) values[k] = sum_of_lanes<kLanes, 32>(rows.values[r][k] * factor);
    f32* const row = sums + threadIdx.x / 32 * kNumbers + r * kSumStride;
    if (threadIdx.x % 32 < kLanes) store_row<false>(row + first_column(), values);
    if (threadIdx.x % 32 == 0) row[kValueWidth] = most, row[kValueWidth + 1] = total;
  }
  __syncthreads();
}
)cuda";

constexpr std::string_view kWithNewRows = R"cuda(
struct NewRows {
  Packed k[kNewRows], v[kNewRows];
  i64 positions[kNewRows];
  __device__ __forceinline__ void load(idx batch, const Operands& x) {
    #pragma unroll
    for (int n = 0; n < kNewRows; ++n) {
      positions[n] = x.positions[n];
      k[n] = load_eight(new_k_place(x, batch, n) + first_column(), x.aligned);
      v[n] = load_eight(new_v_place(x, batch, n) + first_column(), x.aligned);
    }
  }
  __device__ __forceinline__ void put(Part& keys, Part& values, idx first_key, idx end) {  // the last of a position counts
    #pragma unroll
    for (int n = 0; n < kNewRows; ++n)
      #pragma unroll
      for (int i = 0; i < kOwn; ++i)
        if (key_of_thread(first_key, i) == positions[n] && positions[n] < end) keys[i] = k[n], values[i] = v[n];
  }
};
)cuda";

constexpr std::string_view kWithoutNewRows = R"cuda(
struct NewRows {
  __device__ __forceinline__ void load(idx, const Operands&) {}
  __device__ __forceinline__ void put(Part&, Part&, idx, idx) {}
};
)cuda";

constexpr std::string_view kAttend = R"cuda(
typedef f32 Scores[kRows][kOwn];
DEVICE void load_biases(Scores& biases, idx first_key, const Mask* mask, idx batch, const Operands& x) {
  #pragma unroll
  for (int r = 0; r < kRows; ++r)
    #pragma unroll
    for (int i = 0; i < kOwn; ++i) biases[r][i] = bias_at(mask, batch, r, key_of_thread(first_key, i), x);
}

DEVICE void multiply_keys(Scores& scores, const Part& keys, const Packed (&queries)[kRows]) {
  #pragma unroll
  for (int i = 0; i < kOwn; ++i)
    #pragma unroll
    for (int r = 0; r < kRows; ++r) {
      f32 sum = 0;
      #pragma unroll
      for (int k = 0; k < 8; ++k) sum = fmaf(element_of(keys[i], k), element_of(queries[r], k), sum);
      scores[r][i] = sum_of_lanes<1, kLanes>(sum);
    }
}

DEVICE void weigh(Rows& rows, Scores& scores, const Scores& biases) {
  #pragma unroll
  for (int r = 0; r < kRows; ++r) {
    f32 most = rows.most[r], sum = 0;
    #pragma unroll
    for (int i = 0; i < kOwn; ++i) {
      const f32 bias = biases[r][i];
      scores[r][i] = bias == minus_infinity() ? bias : scores[r][i] * kScale + bias;
      most = fmaxf(most, scores[r][i]);
    }
    const f32 factor = weight_of(rows.most[r], most);
    rows.most[r] = most;
    #pragma unroll
    for (int i = 0; i < kOwn; ++i) sum += scores[r][i] = weight_of(scores[r][i], most);
    rows.total[r] = rows.total[r] * factor + sum;
    #pragma unroll
    for (int k = 0; k < 8; ++k) rows.values[r][k] *= factor;
  }
}

DEVICE void multiply_values(Rows& rows, const Scores& weights, const Part& values) {
  #pragma unroll
  for (int i = 0; i < kOwn; ++i)
    #pragma unroll
    for (int r = 0; r < kRows; ++r)
      #pragma unroll
      for (int k = 0; k < 8; ++k) rows.values[r][k] = fmaf(weights[r][i], element_of(values[i], k), rows.values[r][k]);
}
)cuda";

constexpr std::string_view kAttendAll = R"cuda(
DEVICE void attend(char* shared, int block, Cluster& cluster, bool last, Arrivals&, const Maps&, const Mask* mask, Element* result, idx batch, idx first_row, const Operands& x) {
  const int all = (int)((x.keys + kKeys - 1) / kKeys), begin = all * block / kSplits, end = all * (block + 1) / kSplits;
  Part keys, values;
  load_part(keys, k_place, batch, (idx)begin * kKeys, x);
  load_part(values, v_place, batch, (idx)begin * kKeys, x);
  if (kKeysAreOld) wait_for_previous();
  Packed queries[kRows];
  #pragma unroll
  for (int r = 0; r < kRows; ++r) queries[r] = load_eight(q_place(x, batch, r) + first_column(), x.aligned);
  NewRows fresh;
  fresh.load(batch, x);
  Rows rows = {};
  #pragma unroll
  for (int r = 0; r < kRows; ++r) rows.most[r] = minus_infinity();
  for (int part = begin; part < end; ++part) {
    const idx first_key = (idx)part * kKeys, next_key = part + 1 < end ? first_key + kKeys : x.keys;
    Scores scores, biases;
    load_biases(biases, first_key, mask, batch, x);
    fresh.put(keys, values, first_key, x.keys);
    multiply_keys(scores, keys, queries);
    load_part(keys, k_place, batch, next_key, x);
    weigh(rows, scores, biases);
    multiply_values(rows, scores, values);
    load_part(values, v_place, batch, next_key, x);
  }
  cluster.merge(shared, block, rows, result, batch, first_row, last, x);
}
)cuda";

}  // namespace

std::string register_attention_body(int splits, bool has_new_rows) {
  return fmt::format("{}{}{}{}{}{}{}{}", score_functions(), kParts, row_sums(), kKeepRows,
                     has_new_rows ? kWithNewRows : kWithoutNewRows, kAttend, merge_of_shares(splits),
                     kAttendAll);
}

}  // namespace ingot::core::cuda
