// SPDX-License-Identifier: Apache-2.0
// Products of matrices by tensor cores, with what follows them: linear, matmul and convolutions of halves.
#pragma once

#include <string>

#include "backends/backend.h"
#include "loops/kernel.h"

namespace ingot::core::cuda {

// The part of the result that a block computes at a time, and how its warps share it.
struct Tile {
  int rows, columns;
  int warp_rows, warp_columns, warp_depths;
  int depth;   // multiplied at a time
  int stages;  // parts in shared memory: all but one are being copied
  int threads() const { return warp_rows * warp_columns * warp_depths * 32; }
  int64_t shared_bytes(bool b_depth_inner) const;
};

struct ContractionText {
  Tile tile;
  Dim tiles = 1;  // of the result
  std::vector<std::string> symbols;
  int64_t shared_bytes = 0;
  std::string text;  // of the kernel, without preludes
};

// Whether the template computes `node` with the layouts that it has.
bool is_tensor_core_contraction(const Node& node);

// Layouts that it wants of convolutions; of others any that it can read.
LayoutRequest contraction_layouts(const Node& node);

// `epilogue` as for a schedule: buffer 0 is the node's result, loaded where it is stored. The kernel's
// buffers are the node's operands that are present, then the epilogue's without its first.
ContractionText write_contraction(const Node& node, const loops::Kernel& epilogue,
                                  const SymbolTable& symbols);

}  // namespace ingot::core::cuda
