// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/row_text.h"

namespace ingot::core::cuda {
namespace {

//   for tile of the result [kRows x kColumns] that this block has:
//     each warp has kOwnColumns columns of each product (kProducts: twins have the same rows, and weights of
//     one shape), its lanes 16 bytes of the depth at a time:
//       the first kAhead steps of b -> registers, before the kernel waits for its predecessor
//       rows of a -> shared memory, copied or computed (fill_rows)
//       for step of 512 bytes of the depth: products with all rows, in registers
//     meanwhile, or before, a warp for each row: its moments, for a norm
//     sums of the lanes, in a fixed order -> shared memory -> epilogue
// Arithmetic takes far less time than the loads of b.
constexpr std::string_view kBody = R"cuda(
constexpr int kThreads = (kWarps + kMomentWarps) * 32, kColumns = kWarps * kOwnColumns, kStep = 32 * kChunk, kSteps = (kDepth + kStep - 1) / kStep;
constexpr int kOwn = kProducts * kOwnColumns;  // c-th: column c / kProducts of product c % kProducts

DEVICE f32& kept_sum(char* shared, int product, int row, int column) { return ((f32*)shared)[(product * kRows + row) * kColumns + column]; }
DEVICE Element* rows_in(char* shared) { return (Element*)&kept_sum(shared, kProducts, 0, 0); }
DEVICE Packed load_chunk(const Element* from) {
  return kBIsWeight ? load_once(from) : *(const Packed*)from;  // the kernel before may still have been writing it when this one began
}
DEVICE Packed b_chunk(const Operands& x, idx batch, idx first_column, int c, int step) {
  const int depth = step * kStep + threadIdx.x % 32 * kChunk;
  const idx column = first_column + c / kProducts;
  return depth < kDepth && column < x.columns ? load_chunk(b_place(operands_of(x, c % kProducts), batch, column, depth)) : Packed{};
}

DEVICE void multiply_rows(const Element* a, const Packed (&ahead)[kAhead][kOwn], idx batch, idx column, char* shared, const Operands& x) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  f32 sums[kRows][kOwn] = {};
  const auto add = [&](int step, const Packed (&b)[kOwn]) {
    const int depth = step * kStep + lane * kChunk;
    if (depth >= kDepth) return;
    #pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const Packed& own = *(const Packed*)(a + r * kDepth + depth);
      #pragma unroll
      for (int k = 0; k < kChunk; ++k) {
        const f32 number = element_of(own, k);
        #pragma unroll
        for (int c = 0; c < kOwn; ++c) sums[r][c] = fmaf(number, element_of(b[c], k), sums[r][c]);
      }
    }
  };
  #pragma unroll
  for (int s = 0; s < kAhead; ++s) add(s, ahead[s]);
  #pragma unroll 4
  for (int s = kAhead; s < kSteps; ++s) {
    Packed b[kOwn];
    #pragma unroll
    for (int c = 0; c < kOwn; ++c) b[c] = b_chunk(x, batch, column, c, s);
    add(s, b);
  }
  #pragma unroll
  for (int r = 0; r < kRows; ++r)
    #pragma unroll
    for (int c = 0; c < kOwn; ++c) {
      const f32 sum = sum_of_warp(sums[r][c]);
      if (lane == 0) kept_sum(shared, c % kProducts, r, warp * kOwnColumns + c / kProducts) = sum;
    }
}

template <class Begin, class End> DEVICE void multiply_tile(char* shared, int, idx batch, idx first_row, idx first_column, const Operands& x, const Begin& begin_epilogue, const End& end_products) {
  const int warp = threadIdx.x / 32;
  Element* const a = rows_in(shared);  // [kRows][kDepth], after the kept sums
  const idx column = first_column + warp * kOwnColumns;
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
  for (int i = threadIdx.x; i < kProducts * kRows * kColumns; i += kThreads) {
    const idx row = first_row + i / kColumns % kRows, column = first_column + i % kColumns;
    ((f32*)shared)[i] = row < x.rows && column < x.columns ? sum_one_by_one(0, x.depth, batch, row, column, operands_of(x, i / (kRows * kColumns))) : 0;
  }
  __syncthreads();
}

DEVICE void end_tile(bool last) { if (!last) __syncthreads(); }
DEVICE void add_shares_of(f32 (&sums)[kWide], char* shared, int row, int column) { sums[0] = kept_sum(shared, 0, row, column); }
DEVICE f32 twin_sum(char* shared, int row, int column) { return kept_sum(shared, kProducts - 1, row, column); }
)cuda";

}  // namespace

std::string_view row_body() { return kBody; }

}  // namespace ingot::core::cuda
