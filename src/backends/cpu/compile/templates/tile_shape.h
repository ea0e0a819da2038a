// SPDX-License-Identifier: Apache-2.0
// The shape of a microkernel, what decides it, and the operands of a call.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "backends/cpu/compile/llvm/control_flow.h"
#include "support/cpu_features.h"
#include "types/dtype.h"

namespace ingot::core::cpu {

inline constexpr int kMatrixRows = 16;   // of a register
inline constexpr int kMatrixWords = 16;  // of a row of it

struct TileShape {
  int rows;
  int vectors;
  int lanes;                 // sums per vector register
  DType a = DType::kF32;     // f32, f64 or bf16 if both are, or u8
  DType b = DType::kF32;     // beside f32 also bf16, f16 and i8; beside u8 i8
  bool sums_quads = false;   // u8: by one instruction (VNNI)
  bool by_matrices = false;  // bf16 or u8, by matrix registers: 16 or 32 rows
  bool by_tables = false;    // B is fp8, and a step's 64 numbers are looked up together (VBMI)
  int columns() const { return vectors * lanes; }
  DType sum() const { return a == DType::kF64 ? a : is_floating(a) ? DType::kF32 : DType::kI32; }
  DType word() const { return group() == 1 ? a : DType::kI32; }           // of A, and as wide as a sum
  int group() const { return a == DType::kF64 ? 1 : 32 / bit_width(a); }  // adjacent elements of K in a step
  int64_t vector_bytes() const { return int64_t{lanes} * bit_width(sum()) / 8; }
  int64_t sums_bytes() const { return rows * vectors * vector_bytes(); }
  int64_t step_bytes() const { return int64_t{columns()} * group() * bit_width(b) / 8; }  // of B
  int64_t products_a_nanosecond() const { return by_matrices ? 800 : 50; }  // roughly, of a core
  bool operator==(const TileShape&) const = default;
};

std::string to_string(const TileShape& tile);  // "tile 8x3x16 f32 bf16": all that determines its code

// Whether vector products of bf16 are faster than those of the same numbers as f32. Processors with FP16
// instructions run those of bf16 at a quarter of the rate: their fast ones are matrix products.
bool multiplies_bf16(CpuFeatures features);

// Whether the processor multiplies such numbers by matrix registers.
bool multiplies_matrices(DType a, DType b, CpuFeatures features);

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
  kMatrix,   // one pointer: row r begins r * stride bytes after it, and has zeros behind its last word
};

// How tiles of rows are addressed that have pointers, or matrix registers.
inline TileOperand operand_of(const TileShape& tile) {
  return tile.by_matrices ? TileOperand::kMatrix : TileOperand::kRows;
}

constexpr int64_t kCacheLine = 64;  // bytes

// The operands of one call.
struct TileCall {
  llvm::Value* a;         // kRows: an array [segments][tile.rows] of pointers; else the pointer itself
  llvm::Value* stride;    // kColumns: words between two steps; kMatrix: bytes between two rows
  llvm::Value* segments;  // kRows: blocks of `count` steps, each with its own row pointers
  llvm::Value* count;     // steps of a segment
  llvm::Value* b;         // [segments * count] rows of tile.step_bytes(), aligned to a vector
  llvm::Value* sums;      // [rows][tile.columns()], aligned to a vector: written
  // What tiles that are not streaming prefetch: the line at `next` + step * `next_stride` bytes.
  llvm::Value* next = nullptr;
  llvm::Value* next_stride = nullptr;
};

// Locality as in llvm.prefetch: 3 is the first-level cache, 2 the second.
void prefetch_line(Builder& builder, llvm::Value* address, uint32_t locality);

}  // namespace ingot::core::cpu
