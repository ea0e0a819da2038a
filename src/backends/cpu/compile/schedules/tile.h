// SPDX-License-Identifier: Apache-2.0
// The register tile: the inner loop of every contraction.
//
// A tile is `rows` x `columns()` sums in registers. Each step of the loop loads one row of `columns()`
// numbers of B, broadcasts one number for each row of A, and multiplies them into the sums.
#pragma once

#include <optional>

#include "backends/cpu/compile/llvm/code.h"

#include "backends/cpu/compile/llvm/control_flow.h"
#include "support/cpu_features.h"

namespace ingot::core::cpu {

struct TileShape {
  int rows;
  int vectors;
  int lanes;  // f32 numbers of a vector register
  int columns() const { return vectors * lanes; }
  bool operator==(const TileShape&) const = default;
};

// The tile whose panels waste the least of `columns` columns; among equals the fastest. `columns` 0: not
// known.
TileShape choose_tile(int64_t columns, CpuFeatures features);

// Row counts for which code is made: tile.rows, then halves of it down to 1. A count in between is computed
// by the next larger one, with pointers to any readable row for the rows that do not exist. Where it is known
// how many `rows` the tiles divide among them, only the counts of a whole tile and of the last one.
std::vector<int> tile_row_counts(const TileShape& tile, std::optional<int64_t> rows);

// Where the numbers of A are, f32 each.
enum class TileOperand {
  kRows,     // one pointer a row: number k of row r is pointers[r][k]
  kColumns,  // one pointer: number k of row r is pointer[k * stride + r]
};

constexpr int64_t kCacheLine = 64;  // bytes

// Steps that are summed in one register. Longer sums are made of parts of so many steps, so that rounding
// errors do not grow with the length: as libraries do, which block their sums for the cache.
constexpr int64_t kLongestRun = 384;

// What holds for all calls of a tile function.
struct TileBounds {
  int64_t segments = 1;          // at most
  std::optional<int64_t> count;  // of a segment, where it is known
  std::optional<int64_t> rows;   // of A, where known and divided into tiles from the first one on
};

// The operands of one call.
struct TileCall {
  llvm::Value* a;         // kRows: an array [segments][tile.rows] of pointers; kColumns: the pointer itself
  llvm::Value* stride;    // kColumns: numbers between two steps; kRows: unused
  llvm::Value* segments;  // kRows: runs of `count` steps, each with its own row pointers
  llvm::Value* count;     // steps of a segment
  llvm::Value* b;         // [segments * count][tile.columns()], aligned to a vector
  llvm::Value* sums;      // [rows][tile.columns()], aligned to a vector: written
  llvm::Value* next = nullptr;  // what tiles that prefetch fetch, a cache line a step
};

// The functions of a module that compute tiles of one shape.
class TileFunctions {
 public:
  // `prefetch`: tiles of few rows, which wait for memory, fetch B ahead of use; the others fetch
  // TileCall::next.
  TileFunctions(Code& code, TileShape shape, TileOperand operand, const TileBounds& bounds, bool prefetch);

  // Computes the tile for `rows` rows (1 <= rows <= shape.rows). Sums of rows that do not exist hold numbers
  // without meaning.
  void call(Builder& builder, llvm::Value* rows, const TileCall& call) const;

 private:
  std::vector<int> row_counts_;             // from many to few
  std::vector<llvm::Function*> functions_;  // one for each of them
};

}  // namespace ingot::core::cpu
