// SPDX-License-Identifier: Apache-2.0
// The loops around the microkernel for products with prepacked weights: linear and convolution.
//
//   for each block of rows of A                 (about equal, of at most MC rows: PanelTactic)
//     for each panel of NR columns of B         (prepacked by the init program: contiguous, K x NR)
//       for each MR rows of the block           (one work item; threads take ranges of items)
//         (B narrower than A, and more rows than a tile: convert the panel, unless the last item has)
//         fill the table of row pointers of A
//         microkernel over all of K, in blocks of KC
//         (matrix registers: instead of the table, A as it lies in memory, or a copy that all panels share)
//         epilogue on the MR x NR accumulators
//
// result[row, column] = epilogue(bias[column] + sum over segments s and steps k of A(row, s)[k] *
// panels[column][s * count + k]). Weights are in panels of NR = tile.columns() columns: [groups * panels per
// group][segments * count / group][tile.columns()][group], zero-padded, with group = tile.group(). K =
// segments * count: a convolution has one segment per tap or row of the window.
#pragma once

#include "backends/cpu/compile/templates/epilogue.h"
#include "backends/cpu/compile/templates/kernel_template.h"
#include "backends/cpu/compile/templates/panel.h"
#include "backends/cpu/compile/templates/panel_tactic.h"
#include "backends/cpu/compile/templates/scaled_tile.h"
#include "backends/cpu/compile/templates/tile.h"

namespace ingot::core::cpu {

// Everything from which row pointers are computed.
struct RowRequest {
  Builder& builder;
  const DimEmitter& dims;
  std::span<llvm::Value* const> buffers;  // of the kernel
  llvm::Value* row;                       // first row of the tile
  llvm::Value* rows;                      // how many there are
  llvm::Value* group;
  llvm::Value* table;   // [segments][tile.rows] pointers: to be filled, all of them readable
  llvm::Type* element;  // of A, as stored
  llvm::Value* extra;   // PanelProblem::extra_bytes of scratch
};

struct PanelProblem {
  std::string name;
  SymbolTable symbols;
  std::vector<TensorType>
      operands;  // buffers of the kernel before the epilogue's: 0 is A, 1 the panels, 2 the bias if any
  Dim rows;
  int64_t columns = 0;  // of a group
  int64_t groups = 1;
  int64_t segments = 1, count = 0;  // count: elements of a segment, a multiple of tile.group()
  TileShape tile;                   // with the rows of the tactic
  // Scales of the panels: operand 2 holds them and 3 the zero points, and there is no bias.
  std::optional<BlockScales> scales = std::nullopt;
  PanelTactic tactic;
  loops::Kernel epilogue;
  size_t column_dim = 0;  // of the result
  int64_t extra_bytes = 0;
  std::optional<int64_t> row_numbers;  // row r of A is contiguous and begins at r times so many, if known
  std::function<void(const RowRequest&)> fill_rows;
  std::function<void(const RowRequest&)>
      begin;  // once per call, before the first item; row, rows and group are null; may be empty
};

// Before the functions of `problem` are made, which depend on the rows of its tile.
inline void take_tactic(PanelProblem& problem, const PanelTactic& tactic, CpuFeatures features) {
  problem.tactic = tactic;
  if (tactic.row_block_bytes == 0) problem.tactic.row_block_bytes = fits_second_level(features);
  if (tactic.rows > 0) problem.tile.rows = tactic.rows;
}

// `key` must contain everything that the functions of `problem` depend on.
TemplateKernel plan_panels(PanelProblem problem, const std::string& key, const Target& target);

}  // namespace ingot::core::cpu
