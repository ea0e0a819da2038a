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
// beside f32 are converted as they are loaded. Without an instruction for sums of four products of bytes, the
// even and the odd bytes of both become i16, whose pairs are multiplied and added: exact, and half as many
// instructions as in f32.
//
// MR is TileShape::rows, NR TileShape::columns(). The loops around it are in panel_kernel.h, matmul.h and
// attention_blocks.cpp.
#pragma once

#include <optional>

#include "backends/cpu/compile/llvm/code.h"

#include "backends/cpu/compile/llvm/control_flow.h"
#include "support/cpu_features.h"
#include "types/dtype.h"

namespace ingot::core::cpu {

struct TileShape {
  int rows;
  int vectors;
  int lanes;                // sums per vector register
  DType a = DType::kF32;    // f32, f64 or bf16 if both are, or u8
  DType b = DType::kF32;    // beside f32 also bf16, f16 and i8; beside u8 i8
  bool sums_quads = false;  // u8: by one instruction (VNNI)
  int columns() const { return vectors * lanes; }
  DType sum() const { return a == DType::kF64 ? a : is_floating(a) ? DType::kF32 : DType::kI32; }
  DType word() const { return group() == 1 ? a : DType::kI32; }           // of A, and as wide as a sum
  int group() const { return a == DType::kF64 ? 1 : 32 / bit_width(a); }  // adjacent elements of K in a step
  int64_t vector_bytes() const { return int64_t{lanes} * bit_width(sum()) / 8; }
  int64_t sums_bytes() const { return rows * vectors * vector_bytes(); }
  int64_t step_bytes() const { return int64_t{columns()} * group() * bit_width(b) / 8; }  // of B
  bool operator==(const TileShape&) const = default;
};

std::string to_string(const TileShape& tile);  // "tile 8x3x16 f32 bf16": all that determines its code

// Whether products of bf16 are faster than those of the same numbers as f32. Processors with FP16
// instructions run those of bf16 at a quarter of the rate: their fast ones are matrix tiles.
bool multiplies_bf16(CpuFeatures features);

// Whether there are microkernels for these numbers that are worth using.
bool has_tiles(DType a, DType b, CpuFeatures features);

// The tile that wastes the fewest of `columns` columns, then the fastest. `columns` 0: unknown.
TileShape choose_tile(int64_t columns, CpuFeatures features, DType a = DType::kF32, DType b = DType::kF32);

// Row counts to generate code for: MR, then halves of it down to 1. A count in between uses the next larger
// one, with pointers to any readable row for missing rows. If the number of `rows` that are divided into
// tiles is known, only the counts of a whole tile and of the last one.
std::vector<int> tile_row_counts(const TileShape& tile, std::optional<int64_t> rows);

// How A is addressed, in words.
enum class TileOperand {
  kRows,     // one pointer per row: word k of row r is pointers[r][k]
  kColumns,  // one pointer: word k of row r is pointer[k * stride + r]
};

constexpr int64_t kCacheLine = 64;  // bytes

// KC: steps accumulated in registers before they are added to C, so that rounding errors do not grow with K:
// with unlimited runs they reached five times eager's. BLAS libraries block K similarly, for the cache.
constexpr int64_t kLongestRun = 384;

// Valid for all calls of a microkernel.
struct TileBounds {
  int64_t segments = 1;          // at most
  std::optional<int64_t> count;  // steps of a segment, if known
  std::optional<int64_t> rows;   // of A, if known and divided into tiles from the first one on
};

// The operands of one call.
struct TileCall {
  llvm::Value* a;         // kRows: an array [segments][tile.rows] of pointers; kColumns: the pointer itself
  llvm::Value* stride;    // kColumns: words between two steps; kRows: unused
  llvm::Value* segments;  // kRows: blocks of `count` steps, each with its own row pointers
  llvm::Value* count;     // steps of a segment
  llvm::Value* b;         // [segments * count] rows of tile.step_bytes(), aligned to a vector
  llvm::Value* sums;      // [rows][tile.columns()], aligned to a vector: written
  // What tiles that are not streaming prefetch: the line at `next` + step * `next_stride` bytes.
  llvm::Value* next = nullptr;
  llvm::Value* next_stride = nullptr;
};

// The microkernels of a module for one tile shape.
class TileFunctions {
 public:
  // `prefetch`: tiles of few rows, which are bound by memory, prefetch B; the others prefetch TileCall::next.
  TileFunctions(Code& code, TileShape shape, TileOperand operand, const TileBounds& bounds, bool prefetch);

  // Computes the tile for `rows` rows (1 <= rows <= shape.rows). Rows beyond contain unspecified values.
  void call(Builder& builder, llvm::Value* rows, const TileCall& call) const;

 private:
  std::vector<int> row_counts_;             // in decreasing order
  std::vector<llvm::Function*> functions_;  // one per count
};

}  // namespace ingot::core::cpu
