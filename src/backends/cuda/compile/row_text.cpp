// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/row_text.h"

namespace ingot::core::cuda {
namespace {

//   for tile of the result [kRows x kColumns] that this block has:
//     each warp has kOwnColumns columns, its lanes 8 neighbours of the depth at a time:
//       the first kAhead steps of b -> registers, before the kernel waits for the one before it
//       rows of a -> shared memory
//       for step of 256 of the depth: products with all rows, in registers
//     sums of the lanes, in a fixed order -> shared memory -> epilogue
// Arithmetic is far below what the loads of b take.
constexpr std::string_view kBody = R"cuda(
constexpr int kThreads = kWarps * 32, kColumns = kWarps * kOwnColumns, kSumStride = kColumns, kSteps = (kAllDepth + 255) / 256;

struct __align__(16) Chunk { u32 pairs[4]; };
DEVICE Chunk load_chunk(const u16* from) {  // read once: not kept in L1
  if (!kBIsWeight) return *(const Chunk*)from;  // the kernel before may still have been writing it when this one began
  Chunk c;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(c.pairs[0]), "=r"(c.pairs[1]), "=r"(c.pairs[2]), "=r"(c.pairs[3]) : "l"(from));
  return c;
}
DEVICE f32 low_half(u32 pair) { const u16 half = (u16)pair; return load_half<kBf16>(&half); }
DEVICE f32 high_half(u32 pair) { const u16 half = (u16)(pair >> 16); return load_half<kBf16>(&half); }

DEVICE Chunk b_chunk(const Operands& x, idx batch, idx column, int step) {
  const int depth = step * 256 + threadIdx.x % 32 * 8;
  return depth < kAllDepth && column < x.columns ? load_chunk(b_place(x, batch, column, depth)) : Chunk{};
}

DEVICE void multiply_tile(char* shared, int, idx batch, idx first_row, idx first_column, const Operands& x) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  f32* const kept = (f32*)shared;                         // [kRows][kColumns]
  u16* const a = (u16*)(shared + kRows * kColumns * 4);   // [kRows][kAllDepth]
  const idx column = first_column + warp * kOwnColumns;
  Chunk ahead[kAhead][kOwnColumns];
  if (!kBIsWeight) wait_for_previous();
  #pragma unroll
  for (int s = 0; s < kAhead; ++s)
    #pragma unroll
    for (int c = 0; c < kOwnColumns; ++c) ahead[s][c] = b_chunk(x, batch, column + c, s);
  if (kBIsWeight) wait_for_previous();
  let_next_start();
  for (int i = threadIdx.x; i < kRows * (kAllDepth / 8); i += kThreads) {
    const int row = i / (kAllDepth / 8), depth = i % (kAllDepth / 8) * 8;
    bool valid = first_row + row < x.rows;
    const u16* from = a_place(x, a_source(x, batch, first_row + row, depth, valid), 0, depth, valid);
    copy_chunk(a + row * kAllDepth + depth, valid ? from : x.a, valid);
  }
  commit_copies();
  wait_for_copies<0>();
  __syncthreads();
  f32 sums[kRows][kOwnColumns] = {};
  const auto add = [&](int step, const Chunk (&b)[kOwnColumns]) {
    const int depth = step * 256 + lane * 8;
    if (depth >= kAllDepth) return;
    #pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const Chunk& own = *(const Chunk*)(a + r * kAllDepth + depth);
      #pragma unroll
      for (int p = 0; p < 4; ++p) {
        const f32 low = low_half(own.pairs[p]), high = high_half(own.pairs[p]);
        #pragma unroll
        for (int c = 0; c < kOwnColumns; ++c) {
          sums[r][c] = fmaf(low, low_half(b[c].pairs[p]), sums[r][c]);
          sums[r][c] = fmaf(high, high_half(b[c].pairs[p]), sums[r][c]);
        }
      }
    }
  };
  #pragma unroll
  for (int s = 0; s < kAhead; ++s) add(s, ahead[s]);
  #pragma unroll 4
  for (int s = kAhead; s < kSteps; ++s) {
    Chunk b[kOwnColumns];
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
  __syncthreads();
}

DEVICE void multiply_one_by_one(f32* kept, int, idx batch, idx first_row, idx first_column, const Operands& x) {
  for (int i = threadIdx.x; i < kRows * kColumns; i += kThreads) {
    const idx row = first_row + i / kColumns, column = first_column + i % kColumns;
    f32 sum = 0;
    for (int depth = 0; depth < kAllDepth && row < x.rows && column < x.columns; ++depth) {
      bool valid = true;
      const u16* a = a_place(x, a_source(x, batch, row, depth, true), 0, depth, valid);
      sum = fmaf(load_half<kBf16>(a), load_half<kBf16>(b_place(x, batch, column, depth)), sum);
    }
    kept[i] = sum;
  }
  __syncthreads();
}

DEVICE void add_shares_of(f32 (&sums)[kWide], const f32* place) { sums[0] = *place; }
)cuda";

}  // namespace

std::string_view row_body() { return kBody; }

}  // namespace ingot::core::cuda
