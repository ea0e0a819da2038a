// SPDX-License-Identifier: Apache-2.0
// Descriptions of operands for bulk copies (kernel_abi.h), and the code that copies boxes of them.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backends/cuda/compile/index_text.h"
#include "backends/cuda/kernel_abi.h"
#include "engine/launch.h"

namespace ingot::core::cuda {

struct TensorMap {
  size_t buffer = 0;         // of the kernel's arguments
  std::vector<Dim> extents;  // innermost first
  std::vector<Dim> strides;  // in elements, of all but the innermost
  std::vector<int64_t> box;  // extent along each dim
  struct Windows {
    std::array<int64_t, kMapPlaneRank> steps, lower, upper;  // along (x, y)
  };
  std::optional<Windows> windows;
};

// The map of a dense tensor whose dims have `extents`, innermost first; boxes are kMapInner wide and 1 along
// the other dims.
TensorMap map_of_dense(size_t buffer, std::vector<Dim> extents);
// The map of a tensor whose layout is a permutation.
TensorMap map_of_stored(size_t buffer, const TensorType& type);
// The position of `dim` among the dims of such a map.
size_t storage_position(size_t dim, const TensorType& type);
// The signature of the function that copies a box of an operand, starting at row or column `first`, with
// kMapInner of its depth: "void copy_q_box(to, barrier, map, x, batch, first, depth)".
std::string box_copy_signature(std::string_view operand);
// ", d2, d0": the element `index` as coordinates of such a map.
std::string box_coordinates(const TensorType& type, const std::vector<Dim>& index, const IndexScope& scope);

// Appends the map to the sizes and constants of `launch`.
void add_tensor_map(const TensorMap& map, Launch& launch);

}  // namespace ingot::core::cuda
