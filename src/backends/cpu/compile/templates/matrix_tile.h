// SPDX-License-Identifier: Apache-2.0
// The microkernel of processors with matrix registers (AMX): C[32][32] = A[32][K] * B[K][32], by words.
//
// A register holds 16 rows of 16 words. Four hold sums, two rows of A and two columns of B:
//
//   for each 16 steps
//     load rows 0..15 and 16..31 of A, columns 0..15 and 16..31 of the steps of B
//     add their four products to the sums
//
// A panel of B is that of other tiles, [steps][32][group]. Rows of A are read where they lie if 16 of them
// are there, one register row apart or more, and their words fill registers. Otherwise they are packed:
// copied one after the other, with zeros behind the last word. The last steps of a panel that do not fill a
// register are copied too, since what follows them in memory may be NaN, which 0 does not cancel.
//
// Sums stay in their registers for all of K: rounding the operands to bf16 costs more than sums of f32 of
// any length that occurs.
#pragma once

#include "backends/cpu/compile/templates/scaffold.h"
#include "backends/cpu/compile/templates/tile_shape.h"

namespace ingot::core::cpu {

// A kernel configures its thread's registers when it is called and releases them before it returns, so that
// no other code finds them in use, whichever thread runs it. Does nothing for other tiles.
void begin_matrices(Builder& builder, const TileShape& tile);
void end_matrices(Builder& builder, const TileShape& tile);

// Row r of A begins `stride` bytes after row r - 1. In place of TileCall::a and TileCall::stride.
struct MatrixRows {
  llvm::Value *start, *stride;
};

// Room for `words` words and what the registers read behind them. Not a power of two, which the rows of a
// cache's set would be apart.
inline int64_t packed_row_bytes(int64_t words) {
  return (round_up(words, kMatrixWords) + kMatrixWords) * int64_t{sizeof(int32_t)};
}
inline Dim packed_row_bytes(const Dim& words) {
  return (core::ceil_divide(words, kMatrixWords) + Dim(1)) * Dim(kMatrixWords * int64_t{sizeof(int32_t)});
}

// Copies `words` words, and zeros up to a register's row of them.
void pack_words(Scaffold& scaffold, llvm::Value* from, llvm::Value* to, llvm::Value* words);

// `rows` (at most a tile's) rows of `words` words: those at `in_memory` if they fill registers, else packed
// ones at `packed`, which `pack` writes.
MatrixRows choose_rows(Scaffold& scaffold, const MatrixRows& in_memory, const MatrixRows& packed,
                       llvm::Value* rows, llvm::Value* words, const std::function<void()>& pack);
// The same where packed rows are copies of those in memory.
MatrixRows choose_rows(Scaffold& scaffold, const MatrixRows& in_memory, const MatrixRows& packed,
                       llvm::Value* rows, llvm::Value* words);

// The body of a function for shape.rows rows, all of them readable.
void emit_matrix_tile(Builder& builder, const TileShape& shape, const TileCall& call, bool prefetch);

}  // namespace ingot::core::cpu
