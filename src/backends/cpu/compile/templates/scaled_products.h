// SPDX-License-Identifier: Apache-2.0
// Products of up to a tile of rows with panels that have scales. Packed weights are multiplied in fixed point
// where the processor can. That, and zero points that are subtracted from sums, need finite rows, for which
// each call of the kernel looks first: others are multiplied row by row, with zero points that are subtracted
// from elements.
#pragma once

#include "backends/cpu/compile/templates/fixed_tile.h"

namespace ingot::core::cpu {

class ScaledProducts {
 public:
  ScaledProducts(Scaffold& scaffold, const TileShape& tile, const BlockScales& scales, int64_t depth,
                 std::optional<int64_t> rows);

  static int64_t scratch_bytes(const TileShape& tile, const BlockScales& scales, int64_t depth,
                               CpuFeatures features);

  // Once per call, before the first product. `a`: adjacent rows; more than a tile are ignored.
  void begin(llvm::Value* a, llvm::Value* rows, llvm::Value* scratch);
  // Computes sums [rows][NR] of all rows; `table` holds a pointer to each.
  void call(llvm::Value* rows, llvm::Value* table, const ScaledPanel& panel, llvm::Value* sums);

 private:
  void call_one_by_one(llvm::Value* rows, llvm::Value* table, const ScaledPanel& panel, llvm::Value* sums);

  Scaffold& scaffold_;
  TileShape tile_;
  BlockScales scales_;
  FixedRows fixed_;
  std::optional<FixedTileFunctions> of_fixed_;
  std::optional<ScaledTileFunctions> of_floats_;  // if not fixed
  std::optional<ScaledTileFunctions> of_any_;     // one row, if those need finite ones
  llvm::Value* finite_ = nullptr;                 // on the stack
  llvm::Value* scratch_ = nullptr;
};

}  // namespace ingot::core::cpu
