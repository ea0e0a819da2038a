// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/row_text.h"

namespace ingot::core::cuda {
namespace {

//   for tile of the result [kRows x kColumns] that this block has:
//     each warp has kOwnColumns columns, its lanes 16 bytes of the depth at a time:
//       the first kAhead steps of b -> registers, before the kernel waits for its predecessor
//       rows of a -> shared memory, copied or computed (fill_rows)
//       for step of 512 bytes of the depth: products with all rows, in registers
//     meanwhile, or before, a warp for each row: its moments, for a norm
//     sums of the lanes, in a fixed order -> shared memory -> epilogue
// Arithmetic takes far less time than the loads of b.
constexpr std::string_view kBody = R"cuda(
constexpr int kThreads = (kWarps + kMomentWarps) * 32, kColumns = kWarps * kOwnColumns, kStep = 32 * kChunk, kSteps = (kDepth + kStep - 1) / kStep;

DEVICE Element* rows_in(char* shared) { return (Element*)(shared + kRows * kColumns * 4); }
DEVICE Packed load_chunk(const Element* from) {
  return kBIsWeight ? load_once(from) : *(const Packed*)from;  // the kernel before may still have been writing it when this one began
}
DEVICE Packed b_chunk(const Operands& x, idx batch, idx column, int step) {
  const int depth = step * kStep + threadIdx.x % 32 * kChunk;
  return depth < kDepth && column < x.columns ? load_chunk(b_place(x, batch, column, depth)) : Packed{};
}

DEVICE void multiply_rows(const Element* a, const Packed (&ahead)[kAhead][kOwnColumns], idx batch, idx column, f32* kept, const Operands& x) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  f32 sums[kRows][kOwnColumns] = {};
  const auto add = [&](int step, const Packed (&b)[kOwnColumns]) {
    const int depth = step * kStep + lane * kChunk;
    if (depth >= kDepth) return;
    #pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const Packed& own = *(const Packed*)(a + r * kDepth + depth);
      #pragma unroll
      for (int k = 0; k < kChunk; ++k) {
        const f32 number = element_of(own, k);
        #pragma unroll
        for (int c = 0; c < kOwnColumns; ++c) sums[r][c] = fmaf(number, element_of(b[c], k), sums[r][c]);
      }
    }
  };
  #pragma unroll
  for (int s = 0; s < kAhead; ++s) add(s, ahead[s]);
  #pragma unroll 4
  for (int s = kAhead; s < kSteps; ++s) {
    Packed b[kOwnColumns];
    #pragma unroll
    for (int c = 0; c < kOwnColumns; ++c) b[c] = b_chunk(x, batch, column + c, s);
    add(s, b);
  }
  #pragma unroll
  for (int r = 0; r < kRows; ++r)
    #pragma unroll
    for (int c = 0; c < kOwnColumns; ++c) {
      const f32 sum = reduce_warp<Add>(sums[r][c]);
      if (lane == 0) kept[r * kColumns + warp * kOwnColumns + c] = sum;
    }
}

template <class Begin, class End> DEVICE void multiply_tile(char* shared, int, idx batch, idx first_row, idx first_column, const Operands& x, const Begin& begin_epilogue, const End& end_products) {
  const int warp = threadIdx.x / 32;
  f32* const kept = (f32*)shared;                              // [kRows][kColumns]
  Element* const a = rows_in(shared);                          // [kRows][kDepth]
  const idx column = first_column + warp * kOwnColumns;
  const bool multiplies = kMomentWarps == 0 || warp < kWarps;
  Packed ahead[kAhead][kOwnColumns];
  if (!kBIsWeight) wait_for_previous();
  #pragma unroll
  for (int s = 0; s < kAhead; ++s)
    #pragma unroll
    for (int c = 0; c < kOwnColumns; ++c)
      if (multiplies) ahead[s][c] = b_chunk(x, batch, column + c, s);
  if (kBIsWeight) wait_for_previous();
  if (kNextWithOperands) let_next_start();
  fill_rows(a, batch, first_row, x);
  begin_epilogue();
  wait_for_copies<0>();
  __syncthreads();
  if (kMomentWarps == 0 && warp < kRows) keep_moments_of_row(shared, a, warp);
  if (multiplies) multiply_rows(a, ahead, batch, column, kept, x);
  else keep_moments_of_row(shared, a, warp - kWarps);
  __syncthreads();
}

DEVICE void multiply_one_by_one(char* shared, int, idx batch, idx first_row, idx first_column, const Operands& x) {
  for (int i = threadIdx.x; i < kRows * kColumns; i += kThreads) {
    const idx row = first_row + i / kColumns, column = first_column + i % kColumns;
    ((f32*)shared)[i] = row < x.rows && column < x.columns ? sum_one_by_one(0, x.depth, batch, row, column, x) : 0;
  }
  __syncthreads();
}

DEVICE void end_tile(bool last) { if (!last) __syncthreads(); }
DEVICE void add_shares_of(f32 (&sums)[kWide], char* shared, int row, int column) { sums[0] = ((const f32*)shared)[row * kColumns + column]; }
)cuda";

}  // namespace

std::string_view row_body() { return kBody; }

}  // namespace ingot::core::cuda
