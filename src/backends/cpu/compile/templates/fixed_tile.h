// SPDX-License-Identifier: Apache-2.0
// The microkernel for packed weights of four bits with a scale per block, and rows of A in fixed point
// (fixed_rows.h):
//
//   for each block of the depth
//     for each word of the panel's columns               (eight elements of each column)
//       the even elements as bytes, and the odd ones: and, shift, and
//       for each row and digit: add the products of both with four bytes of A each, in one instruction
//     totals += (65536 S2 + 256 S1 + S0, in units of the block, - zero points * sum of A) * scales
//
// Six instructions per row for 128 weights, where f32 takes eight and sixteen to convert them: few rows are
// then bound by memory, not by instructions.
#pragma once

#include "backends/cpu/compile/templates/fixed_rows.h"
#include "backends/cpu/compile/templates/scaled_tile.h"

namespace ingot::core::cpu {

// Needs words of elements of four bits, whole registers and VNNI.
bool has_fixed_tiles(const TileShape& tile, CpuFeatures features);

class FixedTileFunctions {
 public:
  FixedTileFunctions(Code& code, const TileShape& tile, const BlockScales& scales, const FixedRows& fixed,
                     std::optional<int64_t> rows);

  // Computes sums [rows][NR]; `a`: the first of tile.rows rows, of which `rows` are written.
  void call(Builder& builder, llvm::Value* rows, llvm::Value* a, const ScaledPanel& panel,
            llvm::Value* sums) const;

 private:
  RowFunctions functions_;
};

}  // namespace ingot::core::cpu
