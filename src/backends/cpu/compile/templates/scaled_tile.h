// SPDX-License-Identifier: Apache-2.0
// The microkernel for weights with a scale, and maybe a zero point, per block of the depth:
//
//   for each block of the depth
//     for each element k of the block                       (packed: eight k per word of 32 bits)
//       load the NR numbers of row k of the panel, convert  (packed: by a look-up, with AVX-512)
//       for each of MR rows: multiply-add with A[row][k] into accumulators of the block
//     totals += (accumulators - zero points * sum of A over the block) * scales
//
// Few rows are bound by reading the panel; one row alone has several accumulators per column, so that
// additions do not wait for each other. For more rows than a tile, the panel is dequantized once.
#pragma once

#include "backends/cpu/compile/templates/panel_reader.h"
#include "backends/cpu/compile/templates/scaffold.h"

namespace ingot::core::cpu {

// Where zero points are subtracted: sum(a (q - z)) is sum(a q) - z sum(a) unless an element of A is infinite.
enum class Centering { kSums, kElements };

// Scales are loaded by whole vectors of them.
bool has_scaled_tiles(const TileShape& tile, const BlockScales& scales);

class ScaledTileFunctions {
 public:
  // `tile`: b is the dtype of the numbers.
  ScaledTileFunctions(Code& code, const TileShape& tile, const BlockScales& scales, int64_t depth,
                      std::optional<int64_t> rows, Centering centering);

  // Computes sums [rows][NR] for `rows` rows; `table` holds a pointer to each row of A.
  void call(Builder& builder, llvm::Value* rows, llvm::Value* table, const ScaledPanel& panel,
            llvm::Value* sums) const;

 private:
  RowFunctions functions_;
};

// Writes the panel as f32 [depth][NR].
void dequantize_panel(Scaffold& scaffold, const TileShape& tile, const BlockScales& scales, int64_t depth,
                      const ScaledPanel& from, llvm::Value* to);

}  // namespace ingot::core::cpu
