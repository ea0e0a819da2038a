// SPDX-License-Identifier: Apache-2.0
// The microkernel: the inner loop of every contraction, C[MR][NR] = A[MR][K] * B[K][NR], with sums in f32,
// f64 or i32.
//
//   for each block of KC steps of K                  (kLongestRun)
//     for each step k of the block
//       load the NR elements of row k of B             (`vectors` registers of `lanes`)
//       for each of MR rows: broadcast A[row][k], multiply-add into the row's `vectors` accumulators
//     add the MR x NR accumulators to C                (stored directly if K <= KC)
//
// A step multiplies a word of each row of A: one f64, or 32 bits, which are one f32, two adjacent bf16 with
// the pairs of a row of B [K/2][NR][2], or four u8 with the quads of i8 of [K/4][NR][4]. Narrow numbers of B
// beside f32 are converted as they are loaded; fp8 by tables, which moves columns between the accumulators of
// a row, and they are put in order once at the end. Without an instruction for sums of four products of
// bytes, the even and the odd bytes of both become i16, whose pairs are multiplied and added: exact, and half
// as many instructions as in f32.
//
// Matrix registers multiply the same words in the same panels of B, 16 steps at once: matrix_tile.h.
//
// MR is TileShape::rows, NR TileShape::columns(). The loops around it are in panel_kernel.h, matmul.h and
// attention_blocks.cpp.
#pragma once

#include <optional>

#include "backends/cpu/compile/llvm/code.h"
#include "backends/cpu/compile/templates/row_functions.h"
#include "backends/cpu/compile/templates/tile_shape.h"

namespace ingot::core::cpu {

// KC: steps accumulated in registers before they are added to C, so that rounding errors do not grow with K:
// with unlimited runs they reached five times eager's. BLAS libraries block K similarly, for the cache.
constexpr int64_t kLongestRun = 384;

// Valid for all calls of a microkernel.
struct TileBounds {
  int64_t segments = 1;          // at most
  std::optional<int64_t> count;  // steps of a segment, if known
  std::optional<int64_t> rows;   // of A, if known and divided into tiles from the first one on
};

// The microkernels of a module for one tile shape.
class TileFunctions {
 public:
  // `prefetch`: tiles of few rows, which are bound by memory, prefetch B; the others prefetch TileCall::next.
  TileFunctions(Code& code, TileShape shape, TileOperand operand, const TileBounds& bounds, bool prefetch);

  // Computes the tile for `rows` rows (1 <= rows <= shape.rows). Rows beyond contain unspecified values.
  void call(Builder& builder, llvm::Value* rows, const TileCall& call) const;

 private:
  RowFunctions functions_;
};

}  // namespace ingot::core::cpu
