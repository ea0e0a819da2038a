// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/moments_text.h"

#include <fmt/core.h>

#include "ops/normalization.h"
#include "ops/ops.h"

namespace ingot::core::cuda {
namespace {

constexpr std::string_view kNoMoments = R"cuda(
DEVICE void keep_moments_of_row(char*, const Element*, int) {}
)cuda";

// Squares of distances from the mean, not of the values: large means lose no digits.
constexpr std::string_view kMomentsOfRows = R"cuda(
DEVICE f32* moments_in(char* shared) { return (f32*)(shared + kMoments); }

DEVICE f32 scale_of(f32 squares) { return rsqrtf(squares * (1.f / kDepth) + kEpsilon); }

// The row lies in shared memory whole; a warp takes it into registers. What a lane adds up goes into four sums:
// the products beside take less time than a chain of additions.
constexpr int kChunksOfRow = kDepth / kChunk, kChunksOfLane = (kChunksOfRow + 31) / 32;
template <class Term> DEVICE f32 sum_of_row(const Packed (&own)[kChunksOfLane], const Term& term) {
  f32 sums[4] = {};
  #pragma unroll
  for (int c = 0; c < kChunksOfLane; ++c)
    #pragma unroll
    for (int k = 0; k < kChunk; ++k)
      if (c * 32 + threadIdx.x % 32 < kChunksOfRow) sums[k % 4] += term(element_of(own[c], k));
  return sum_of_warp((sums[0] + sums[1]) + (sums[2] + sums[3]));
}
DEVICE void keep_moments_of_row(char* shared, const Element* a, int row) {
  const int lane = threadIdx.x % 32;
  Packed own[kChunksOfLane];
  #pragma unroll
  for (int c = 0; c < kChunksOfLane; ++c)
    if (c * 32 + lane < kChunksOfRow) own[c] = *(const Packed*)(a + row * kDepth + (c * 32 + lane) * kChunk);
  const f32 mean = kCentered ? sum_of_row(own, [](f32 v) { return v; }) * (1.f / kDepth) : 0;
  const f32 squares = sum_of_row(own, [&](f32 v) { return (v - mean) * (v - mean); });
  if (lane == 0) moments_in(shared)[row * 2] = mean, moments_in(shared)[row * 2 + 1] = scale_of(squares);
}

DEVICE void finish_moments(char* shared, bool aligned, idx first_row, const Operands& x) {
  if (aligned) return;
  const int lane = threadIdx.x % 32, row = threadIdx.x / 32;
  if (row < kRows && first_row + row < x.rows) {
    const Element* const a = x.a + (first_row + row) * x.depth;
    f32 sum = 0, squares = 0;
    for (int d = lane; kCentered && d < kDepth; d += 32) sum += load_element(a + d);
    const f32 mean = kCentered ? sum_of_warp(sum) * (1.f / kDepth) : 0;
    for (int d = lane; d < kDepth; d += 32) squares = fmaf(load_element(a + d) - mean, load_element(a + d) - mean, squares);
    squares = sum_of_warp(squares);
    if (lane == 0) moments_in(shared)[row * 2] = mean, moments_in(shared)[row * 2 + 1] = scale_of(squares);
  }
  __syncthreads();
}
)cuda";

// If means are far from zero, the difference of sums would have few digits: products of differences replace
// a row's sums, and 0 its mean.
constexpr std::string_view kCentering = R"cuda(
DEVICE f32 normalized(f32 sum, const f32* moments, f32 column_sum) { return (kCentered ? sum - moments[0] * column_sum : sum) * moments[1]; }

DEVICE void center_far_rows(char* shared, idx first_row, idx first_column, const Operands& x) {
  constexpr f32 kFar = 256;  // deviations
  f32* const moments = moments_in(shared);
  bool far = false;
  #pragma unroll
  for (int row = 0; row < kRows; ++row) far = far || (first_row + row < x.rows && fabsf(moments[row * 2]) * moments[row * 2 + 1] > kFar);
  if (!kCentered || !far) return;  // all threads alike
  #pragma unroll 1
  for (int i = threadIdx.x; i < kProducts * kRows * kColumns; i += kThreads) {
    const int row = i / kColumns % kRows;
    const Operands own = operands_of(x, i / (kRows * kColumns));
    const idx column = first_column + i % kColumns;
    f32 sum = 0;
    #pragma unroll 1
    for (int d = 0; d < kDepth && first_row + row < x.rows && column < x.columns; ++d)
      sum = fmaf(load_element(x.a + (first_row + row) * x.depth + d) - moments[row * 2], load_element(b_place(own, 0, column, d)), sum);
    keep_whole_sum(shared, i, sum);
  }
  __syncthreads();
  if (threadIdx.x < kRows) moments[threadIdx.x * 2] = 0;
  __syncthreads();
}
)cuda";

}  // namespace

bool computes_moments(const Node& contraction) {
  return contraction.op == &ops::normalized_linear && !contraction.has_operand(ops::kNormalizedScale);
}

std::string moments_functions(const Node& contraction, int64_t offset) {
  if (!computes_moments(contraction)) return std::string(kNoMoments);
  const auto epsilon = static_cast<float>(contraction.attributes<ops::NormalizedLinear>().epsilon);
  return fmt::format(
      "constexpr int kMoments = {};\nconstexpr bool kCentered = {};\nconstexpr f32 kEpsilon = {:a}f;\n{}",
      offset, contraction.has_operand(ops::kNormalizedSums), epsilon, kMomentsOfRows);
}

std::string centering_functions(const Node& contraction) {
  return computes_moments(contraction) ? std::string(kCentering) : "";
}

int64_t moments_bytes(const Node& contraction, int rows) {
  constexpr int64_t kNumbers = 2, kNumber = 4;
  return computes_moments(contraction) ? kNumbers * kNumber * rows : 0;
}

}  // namespace ingot::core::cuda
