// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/row_text.h"

#include <fmt/core.h>

namespace ingot::core::cuda {
namespace {

//   for tile of the result [kRows x kColumns] that this block has:
//     each warp has kOwnColumns columns of each product (kProducts: twins have the same rows, and weights of
//     one shape), and the depth by itself or with the other warps of these columns (kDepthWarps):
//       the first kAhead steps of b -> registers, before the kernel waits for its predecessor
//       rows of a -> shared memory, copied or computed (fill_rows)
//       for step of the depth: products with all rows, in registers
//     meanwhile, or before, a warp for each row: its moments, for a norm
//     sums of the warps -> shared memory, added in order -> epilogue
// Loads of b take as long as memory does, the rest as many cycles as it has instructions: what a warp does
// once, behind the wait, is most of a kernel of few columns.
constexpr std::string_view kKeptSums = R"cuda(
constexpr int kThreads = (kWarps + kMomentWarps) * 32, kColumns = kWarps / kDepthWarps * kOwnColumns, kTileSums = kProducts * kRows * kColumns;

// [kDepthWarps][kProducts][kRows][kColumns]
DEVICE f32& kept_sum(char* shared, int depth_warp, int product, int row, int column) { return ((f32*)shared)[depth_warp * kTileSums + (product * kRows + row) * kColumns + column]; }
DEVICE f32 sum_in(char* shared, int product, int row, int column) {
  f32 sum = kept_sum(shared, 0, product, row, column);
  #pragma unroll
  for (int w = 1; w < kDepthWarps; ++w) sum += kept_sum(shared, w, product, row, column);
  return sum;
}
// In place of what the warps have kept; `place`: in [kProducts][kRows][kColumns].
DEVICE void keep_whole_sum(char* shared, int place, f32 sum) {
  for (int w = 0; w < kDepthWarps; ++w) ((f32*)shared)[w * kTileSums + place] = w == 0 ? sum : 0;
}
DEVICE Element* rows_in(char* shared) { return (Element*)&kept_sum(shared, kDepthWarps, 0, 0, 0); }
DEVICE Packed load_chunk(const Element* from) {
  return kBIsWeight ? load_once(from) : *(const Packed*)from;  // the kernel before may still have been writing it when this one began
}
)cuda";

// A warp has whole columns: its lanes have 16 bytes of 512 of each.
constexpr std::string_view kByLanes = R"cuda(
constexpr int kStep = 32 * kChunk, kSteps = (kDepth + kStep - 1) / kStep;
constexpr int kOwn = kProducts * kOwnColumns;  // chunks of a step: c-th: column c / kProducts of product c % kProducts

DEVICE idx own_column(idx first_column) { return first_column + threadIdx.x / 32 * kOwnColumns; }
DEVICE Packed b_chunk(const Operands& x, idx batch, idx own_column, int c, int step) {
  const int depth = step * kStep + threadIdx.x % 32 * kChunk;
  const idx column = own_column + c / kProducts;
  return depth < kDepth && column < x.columns ? load_chunk(b_place(operands_of(x, c % kProducts), batch, column, depth)) : Packed{};
}

struct Sums {
  f32 each[kRows][kOwn] = {};
  __device__ __forceinline__ void add(const Element* a, int step, const Packed (&b)[kOwn], int) {
    const int depth = step * kStep + threadIdx.x % 32 * kChunk;
    if (depth >= kDepth) return;
    #pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const Packed& own = *(const Packed*)(a + r * kDepth + depth);
      #pragma unroll
      for (int k = 0; k < kChunk; ++k) {
        const f32 number = element_of(own, k);
        #pragma unroll
        for (int c = 0; c < kOwn; ++c) each[r][c] = fmaf(number, element_of(b[c], k), each[r][c]);
      }
    }
  }
  __device__ __forceinline__ void keep(char* shared) const {
    #pragma unroll
    for (int r = 0; r < kRows; ++r)
      #pragma unroll
      for (int c = 0; c < kOwn; ++c) {
        const f32 sum = sum_of_warp(each[r][c]);
        if (threadIdx.x % 32 == 0) kept_sum(shared, 0, c % kProducts, r, threadIdx.x / 32 * kOwnColumns + c / kProducts) = sum;
      }
  }
};
)cuda";

// A warp has eight columns, and two slices of the depth: lane 4 g + q has 16 bytes of 64 of column g in each.
// Products of fragments add up slice s of a column, which is row g + 8 s of a fragment, and that of row r of
// a, which is column 2 r + s of the other: a lane's first and last sum are those of column g and row q. Which
// element of the depth an element of a fragment is does not matter where both agree.
constexpr std::string_view kByTensorCores = R"cuda(
constexpr int kSlices = 2 * kDepthWarps, kStep = kSlices * 4 * kChunk, kSteps = (kDepth + kStep - 1) / kStep;
constexpr int kOwn = kProducts * 2;  // chunks of a step: c-th: slice c / kProducts of product c % kProducts
constexpr int kChains = 4;           // of products of fragments, each of which waits for the one before
static_assert(kOwnColumns == 8 && kRows <= 4 && kChunk == 8, "as rank_row_tiles has it");

DEVICE idx own_column(idx first_column) { return first_column + threadIdx.x / 32 / kDepthWarps * kOwnColumns + threadIdx.x % 32 / 4; }
DEVICE int depth_of(int step, int slice) { return step * kStep + (threadIdx.x / 32 % kDepthWarps * 2 + slice) * 4 * kChunk + threadIdx.x % 4 * kChunk; }
DEVICE Packed b_chunk(const Operands& x, idx batch, idx own_column, int c, int step) {
  const int depth = depth_of(step, c / kProducts);
  return depth < kDepth && own_column < x.columns ? load_chunk(b_place(operands_of(x, c % kProducts), batch, own_column, depth)) : Packed{};
}

struct Sums {
  f32 each[kChains][kProducts][4] = {};
  __device__ __forceinline__ void add(const Element* a, int step, const Packed (&b)[kOwn], int turn) {
    const int lane = threadIdx.x % 32, row = lane / 8, depth = depth_of(step, lane / 4 % 2);
    Packed own = {};
    if (row < kRows && depth < kDepth) own = *(const Packed*)(a + row * kDepth + depth);
    #pragma unroll
    for (int p = 0; p < kProducts; ++p)
      #pragma unroll
      for (int half = 0; half < 2; ++half) {
        const Packed &first = b[p], &second = b[kProducts + p];
        const u32 columns[4] = {first.pairs[2 * half], second.pairs[2 * half], first.pairs[2 * half + 1], second.pairs[2 * half + 1]};
        multiply_fragments<kBf16>(each[(2 * turn + half) % kChains][p], columns, own.pairs[2 * half], own.pairs[2 * half + 1]);
      }
  }
  __device__ __forceinline__ void keep(char* shared) const {
    const int warp = threadIdx.x / 32, row = threadIdx.x % 4;
    #pragma unroll
    for (int p = 0; p < kProducts; ++p) {
      f32 sum = 0;
      #pragma unroll
      for (int c = 0; c < kChains; ++c) sum += each[c][p][0] + each[c][p][3];
      if (row < kRows) kept_sum(shared, warp % kDepthWarps, p, row, warp / kDepthWarps * kOwnColumns + threadIdx.x % 32 / 4) = sum;
    }
  }
};
)cuda";

constexpr std::string_view kTile = R"cuda(
DEVICE void multiply_rows(const Element* a, const Packed (&ahead)[kAhead][kOwn], idx batch, idx column, char* shared, const Operands& x) {
  Sums sums;
  #pragma unroll
  for (int s = 0; s < kAhead; ++s) sums.add(a, s, ahead[s], s);
  #pragma unroll 4
  for (int s = kAhead; s < kSteps; ++s) {
    Packed b[kOwn];
    #pragma unroll
    for (int c = 0; c < kOwn; ++c) b[c] = b_chunk(x, batch, column, c, s);
    sums.add(a, s, b, 0);  // a turn that the compiler knows
  }
  sums.keep(shared);
}

template <class Begin, class End> DEVICE void multiply_tile(char* shared, int, idx batch, idx first_row, idx first_column, const Operands& x, const Begin& begin_epilogue, const End& end_products) {
  const int warp = threadIdx.x / 32;
  Element* const a = rows_in(shared);  // [kRows][kDepth], after the kept sums
  const idx column = own_column(first_column);
  const bool multiplies = kMomentWarps == 0 || warp < kWarps;
  Packed ahead[kAhead][kOwn];
  if (!kBIsWeight) wait_for_previous();
  #pragma unroll
  for (int s = 0; s < kAhead; ++s)
    #pragma unroll
    for (int c = 0; c < kOwn; ++c)
      if (multiplies) ahead[s][c] = b_chunk(x, batch, column, c, s);
  if (kBIsWeight) wait_for_previous();
  if (kNextWithOperands) let_next_start();
  fill_rows(a, batch, first_row, x);
  begin_epilogue();
  wait_for_copies<0>();
  __syncthreads();
  if (kMomentWarps == 0 && warp < kRows) keep_moments_of_row(shared, a, warp);
  if (multiplies) multiply_rows(a, ahead, batch, column, shared, x);
  else keep_moments_of_row(shared, a, warp - kWarps);
  __syncthreads();
}

DEVICE void multiply_one_by_one(char* shared, int, idx batch, idx first_row, idx first_column, const Operands& x) {
  for (int i = threadIdx.x; i < kTileSums; i += kThreads) {
    const idx row = first_row + i / kColumns % kRows, column = first_column + i % kColumns;
    keep_whole_sum(shared, i, row < x.rows && column < x.columns ? sum_one_by_one(0, x.depth, batch, row, column, operands_of(x, i / (kRows * kColumns))) : 0);
  }
  __syncthreads();
}

DEVICE void end_tile(bool last) { if (!last) __syncthreads(); }
DEVICE void add_shares_of(f32 (&sums)[kWide], char* shared, int row, int column) { sums[0] = sum_in(shared, 0, row, column); }
DEVICE f32 twin_sum(char* shared, int row, int column) { return sum_in(shared, kProducts - 1, row, column); }
)cuda";

}  // namespace

std::string row_body(bool by_tensor_cores) {
  return fmt::format("{}{}{}", kKeptSums, by_tensor_cores ? kByTensorCores : kByLanes, kTile);
}

}  // namespace ingot::core::cuda
