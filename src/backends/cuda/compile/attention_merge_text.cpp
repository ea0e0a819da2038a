// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/attention_merge_text.h"

namespace ingot::core::cuda {
namespace {

constexpr std::string_view kScoreFunctions = R"cuda(
DEVICE f32 minus_infinity() { return -__int_as_float(0x7f800000); }
DEVICE f32 power_of_two(f32 v) { f32 r; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v)); return r; }
// e^(v - most), where -infinity is all there is: 0
DEVICE f32 weight_of(f32 v, f32 most) { return power_of_two((v - (most == minus_infinity() ? 0 : most)) * 1.44269504f); }
// What is added to a score; -infinity for what may not be seen.
DEVICE f32 bias_at(const Mask* mask, idx batch, idx row, idx key, const Operands& x) { return key < x.keys && row < x.queries ? bias_of(x, mask, batch, row, key) : minus_infinity(); }
)cuda";

constexpr std::string_view kRowSums = R"cuda(
// What has seen a share of the keys leaves kSumStride numbers per row: values, then the largest score and the total.
// A thread adds up kColumns of a row: fewer where threads would be idle.
constexpr int kNumbers = kRows * kSumStride, kColumns = kRows * kValueWidth <= 4 * kThreads ? 4 : 8, kRowPieces = kValueWidth / kColumns;
struct RowSums {
  f32 values[kColumns], most, total;
};
template <int count> DEVICE RowSums add_up(const f32* row, int stride, int column) {
  RowSums all = {{}, minus_infinity(), 0};
  #pragma unroll
  for (int s = 0; s < count; ++s) all.most = fmaxf(all.most, row[s * stride + kValueWidth]);
  #pragma unroll
  for (int s = 0; s < count; ++s) {
    const f32* const share = row + s * stride;
    const f32 factor = weight_of(share[kValueWidth], all.most);
    all.total += share[kValueWidth + 1] * factor;
    #pragma unroll
    for (int k = 0; k < kColumns; k += 4)
      #pragma unroll
      for (int e = 0; e < 4; ++e) all.values[k + e] += ((const Four*)(share + column + k))->numbers[e] * factor;
  }
  return all;
}

DEVICE void store_row(const RowSums& sums, Element* result, idx batch, idx row, int column, const Operands& x) {
  const f32 factor = sums.total != 0 ? 1 / sums.total : kEmptyIsNan ? __int_as_float(0x7fc00000) : 1;  // without keys: 0, or NaN beside infinite values
  f32 values[kColumns];
  #pragma unroll
  for (int k = 0; k < kColumns; ++k) values[k] = sums.values[k] * factor;
  Element* const to = result + result_place(x, batch, row, column);
  if (kNeighbours) return store_row<kBf16>(to, values);
  for (int k = 0; k < kColumns; ++k) store_element(result + result_place(x, batch, row, column + k), values[k]);
}
)cuda";

constexpr std::string_view kMergeInBlock = R"cuda(
struct Cluster {
  __device__ __forceinline__ void begin(char*) {}
  __device__ __forceinline__ void merge(char* shared, int, const Rows& rows, Element* result, idx batch, idx first_row, bool, const Operands& x) {
    f32* const sums = (f32*)shared;  // [kWarpKeys][kRows][kSumStride]
    keep_rows(sums, rows);
    const int all = (int)least<idx>(kRows, x.queries - first_row);
    for (int c = threadIdx.x; c < all * kRowPieces; c += kThreads)
      store_row(add_up<kWarpKeys>(sums + c / kRowPieces * kSumStride, kNumbers, c % kRowPieces * kColumns), result, batch, first_row + c / kRowPieces, c % kRowPieces * kColumns, x);
    __syncthreads();
  }
};
)cuda";

// The blocks of a cluster send the sums of row r to block r % kSplits. It knows by a barrier when all have
// come: waiting for each other's memory would take a microsecond.
constexpr std::string_view kMergeInCluster = R"cuda(
struct Cluster {
  f32* received;  // [kSplits][kSentRows][kSumStride]
  u32 barrier;
  int tiles, phase;  // tiles before, and those of which this block had rows
  static constexpr int kSentRows = (kRows + kSplits - 1) / kSplits;
  __device__ __forceinline__ void begin(char* shared) {
    received = (f32*)(shared + kReceived);
    barrier = shared_address(received + kSplits * kSentRows * kSumStride);
    tiles = phase = 0;
    if (threadIdx.x == 0) {
      make_barrier(barrier, 1);
      show_barriers();
    }
    arrive_at_cluster();
  }
  __device__ __forceinline__ void merge(char* shared, int block, const Rows& rows, Element* result, idx batch, idx first_row, bool last, const Operands& x) {
    f32* const sums = (f32*)shared;  // [kWarpKeys][kRows][kSumStride]
    const int all = (int)least<idx>(kRows, x.queries - first_row), own = (all - block + kSplits - 1) / kSplits;
    if (threadIdx.x == 0 && own > 0) arrive_and_expect(barrier, own * kSplits * (kValueWidth + 4) * 4);
    keep_rows(sums, rows);
    if (tiles++ == 0) wait_for_cluster();  // all blocks have made their barriers
    for (int c = threadIdx.x; c < all * kRowPieces; c += kThreads) {
      const int row = c / kRowPieces, column = c % kRowPieces * kColumns;
      const RowSums one = add_up<kWarpKeys>(sums + row * kSumStride, kNumbers, column);
      const u32 to = address_in_block(shared_address(received + (block * kSentRows + row / kSplits) * kSumStride), row % kSplits), arrival = address_in_block(barrier, row % kSplits);
      #pragma unroll
      for (int k = 0; k < kColumns; k += 4) send_four(to + (column + k) * 4, arrival, one.values[k], one.values[k + 1], one.values[k + 2], one.values[k + 3]);
      if (column == 0) send_four(to + kValueWidth * 4, arrival, one.most, one.total, 0, 0);
    }
    if (own > 0) {
      wait_for_shares(barrier, phase++ & 1);
      for (int c = threadIdx.x; c < own * kRowPieces; c += kThreads)
        store_row(add_up<kSplits>(received + c / kRowPieces * kSumStride, kSentRows * kSumStride, c % kRowPieces * kColumns), result, batch, first_row + c / kRowPieces * kSplits + block, c % kRowPieces * kColumns, x);
    }
    if (last) return;
    synchronize_cluster();  // what was received is read
  }
};
)cuda";

constexpr std::string_view kNoCluster = R"cuda(
struct Cluster {
  __device__ __forceinline__ void begin(char*) {}
};
)cuda";

}  // namespace

std::string_view score_functions() { return kScoreFunctions; }
std::string_view row_sums() { return kRowSums; }
std::string_view merge_of_shares(int splits) { return splits > 1 ? kMergeInCluster : kMergeInBlock; }
std::string_view no_merge() { return kNoCluster; }

}  // namespace ingot::core::cuda
