// SPDX-License-Identifier: Apache-2.0
// The kernel around the register tile for products with prepacked weights: linear and convolution.
//
// result[row, column] = epilogue(bias[column] + sum over segments s and steps k of A(row, s)[k] *
// panels[column][s * count + k]). Weights stand in panels of tile.columns() columns: [groups * panels a
// group][segments * count][tile.columns()], padded with zeros. A work item is one tile. Items of one panel
// follow each other while their rows of A fit into the cache.
#pragma once

#include "backends/cpu/compile/schedule.h"
#include "backends/cpu/compile/schedules/epilogue.h"
#include "backends/cpu/compile/schedules/tile.h"

namespace ingot::core::cpu {

// What row pointers are computed from.
struct RowRequest {
  Builder& builder;
  const DimEmitter& dims;
  std::span<llvm::Value* const> buffers;  // of the kernel
  llvm::Value* row;                       // first row of the tile
  llvm::Value* rows;                      // how many exist
  llvm::Value* group;
  llvm::Value* table;  // [segments][tile.rows] pointers: to be filled, all of them readable
  llvm::Value* extra;  // PanelProblem::extra_bytes of scratch
};

struct PanelProblem {
  std::string name;
  SymbolTable symbols;
  std::vector<TensorType>
      operands;  // buffers of the kernel before the epilogue's: 0 is A, 1 the panels, 2 the bias if any
  Dim rows;
  int64_t columns = 0;  // of a group
  int64_t groups = 1;
  int64_t segments = 1, count = 0;
  TileShape tile;
  loops::Kernel epilogue;
  size_t column_dim = 0;  // of the result
  int64_t extra_bytes = 0;
  std::function<void(const RowRequest&)> fill_rows;
  std::function<void(const RowRequest&)>
      begin;  // once a call, before the first item; row, rows and group are null; may be empty
};

// `key` has to hold what the functions of `problem` depend on.
ScheduledKernel plan_panels(PanelProblem problem, const std::string& key, const Target& target);

// Layout of weights whose dim 0 counts columns: {0/panel, others in `order`, 0%panel}.
Layout panel_layout(std::span<const int> order, const TileShape& tile);

}  // namespace ingot::core::cpu
