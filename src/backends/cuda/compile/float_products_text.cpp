// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/float_products_text.h"

#include <fmt/core.h>

namespace ingot::core::cuda {
namespace {

// Tensor cores truncate sums instead of rounding them: only a few products are accumulated there, and the
// partial sums are added by rounding additions. The parts of an infinity are NaN, and so are their products:
// the caller checks for such sums and recomputes them one by one.
constexpr std::string_view kFragments = R"cuda(
// sums[16 x 8] += a[16 x 8] b[8 x 8]. A lane has rows lane / 4 and that + 8 of a, at depth lane % 4 and that + 4.
DEVICE void multiply_tf32(f32 (&sums)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
template <int count> struct Parts32 {  // of the numbers of a fragment
  u32 high[count], low[count];
};
template <int count> DEVICE Parts32<count> parts_of(const u32 (&numbers)[count]) {
  Parts32<count> parts;
  #pragma unroll
  for (int i = 0; i < count; ++i) {
    if (kRounded) asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(parts.high[i]) : "f"(__uint_as_float(numbers[i])));
    else {
      parts.high[i] = (numbers[i] + 0x1000u) & 0xffffe000u;  // rounded; what overflows is mended like an infinity
      parts.low[i] = __float_as_uint(__uint_as_float(numbers[i]) - __uint_as_float(parts.high[i]));
    }
  }
  return parts;
}
// `first`: which two of b's numbers. What is small is added up first.
template <int count> DEVICE void multiply_parts(f32 (&sums)[4], const Parts32<4>& a, const Parts32<count>& b, int first) {
  if (!kRounded) {
    multiply_tf32(sums, a.low, b.high[first], b.high[first + 1]);
    multiply_tf32(sums, a.high, b.low[first], b.low[first + 1]);
  }
  multiply_tf32(sums, a.high, b.high[first], b.high[first + 1]);
}
)cuda";

constexpr std::string_view kProducts = R"cuda(
DEVICE void multiply_tiles(f32 (&sums)[kOwnRows / 16][kOwnColumns / 8][4], const f32* a, const f32* b) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % (kWarpRows * kWarpColumns), first = threadIdx.x / 32 / (kWarpRows * kWarpColumns) * kOwnDepth;
  const int row = warp / kWarpColumns * kOwnRows, column = warp % kWarpColumns * kOwnColumns;
  f32 own[kOwnRows / 16][kOwnColumns / 8][4] = {};
  #pragma unroll
  for (int d = 0; d < kOwnDepth / 8; ++d) {
    const int depth = first + d * 8;
    Parts32<4> pb[kOwnColumns / 16];
    #pragma unroll
    for (int j = 0; j < kOwnColumns / 16; ++j) {
      u32 fb[4];  // columns lane / 4 and that + 8, each at depth lane % 4 and that + 4
      if (kBDepthInner) load_fragments(fb, b + (column + j * 16 + lane % 8 + lane / 16 * 8) * kBStride + depth + lane / 8 % 2 * 4);
      else
        #pragma unroll
        for (int e = 0; e < 4; ++e) fb[e] = __float_as_uint(b[(depth + lane % 4 + e % 2 * 4) * kBStride + column + j * 16 + lane / 4 + e / 2 * 8]);
      pb[j] = parts_of(fb);
    }
    #pragma unroll
    for (int i = 0; i < kOwnRows / 16; ++i) {
      u32 fa[4];
      load_fragments(fa, a + (row + i * 16 + lane % 16) * kAStride + depth + lane / 16 * 4);
      const Parts32<4> pa = parts_of(fa);
      #pragma unroll
      for (int j = 0; j < kOwnColumns / 8; ++j) multiply_parts(own[i][j], pa, pb[j / 2], j % 2 * 2);
    }
  }
  #pragma unroll
  for (int i = 0; i < kOwnRows / 16; ++i)
    #pragma unroll
    for (int j = 0; j < kOwnColumns / 8; ++j)
      #pragma unroll
      for (int e = 0; e < 4; ++e) sums[i][j][e] += own[i][j][e];
}

// Sums that are not numbers, over the same part of the depth.
DEVICE void mend_sums(f32* to, const f32 (&sums)[kOwnRows / 16][kOwnColumns / 8][4], idx first_depth, idx end_depth, idx batch, idx first_row, idx first_column, const Operands& x) {
  if (kRounded) return;
  bool odd = false;
  #pragma unroll
  for (int i = 0; i < kOwnRows / 16; ++i)
    #pragma unroll
    for (int j = 0; j < kOwnColumns / 8; ++j)
      #pragma unroll
      for (int e = 0; e < 4; ++e) odd = odd || sums[i][j][e] != sums[i][j][e];
  if (!__syncthreads_or(odd)) return;
  for (int i = threadIdx.x; i < kRows * kColumns; i += kThreads) {
    f32& sum = to[i / kColumns * kSumStride + i % kColumns];
    if (sum != sum && first_row + i / kColumns < x.rows && first_column + i % kColumns < x.columns)
      sum = sum_one_by_one(first_depth, end_depth, batch, first_row + i / kColumns, first_column + i % kColumns, x);
  }
  __syncthreads();
}
)cuda";

}  // namespace

std::string float_fragment_functions(bool rounded) {
  return fmt::format("constexpr bool kRounded = {};\n{}", rounded, kFragments);
}
std::string_view products_of_floats() { return kProducts; }

}  // namespace ingot::core::cuda
