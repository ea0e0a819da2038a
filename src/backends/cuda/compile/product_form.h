// SPDX-License-Identifier: Apache-2.0
// The body of a tactic: tiles by warps (tensor_core_text), tiles by warp groups (warp_group_text), by these
// that finish from registers (persistent_text), or single rows (row_text).
#pragma once

#include <string>
#include <vector>

#include "backends/cuda/compile/product_shape.h"
#include "backends/cuda/compile/product_tactic.h"
#include "backends/cuda/compile/tensor_map.h"

namespace ingot::core::cuda {

struct ProductForm {
  int rows = 0, columns = 0;  // of the result tile of a block or cluster
  int threads = 0;            // of a block
  int splits = 1;             // blocks of a cluster, each with a share of the depth
  bool persistent = false;    // a block takes several tiles, which are not ended one by one
  int wide = 8;               // contiguous elements that a thread finishes at a time
  int64_t shared_bytes = 0;   // of a block
  std::vector<TensorMap> maps;
  std::string functions, constants, body;
};

ProductForm product_form(const Node& contraction, const ProductShape& shape, const ProductSize& typical,
                         bool rounds_to_tf32, const ProductTactic& tactic);

}  // namespace ingot::core::cuda
