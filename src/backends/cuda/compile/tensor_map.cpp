// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/tensor_map.h"

#include <algorithm>

#include <fmt/core.h>

namespace ingot::core::cuda {
namespace {

// The dims of a permuted tensor, innermost first.
std::vector<size_t> storage_order(const TensorType& type) {
  std::vector<size_t> order;
  for (size_t i = type.rank(); i-- > 0;)
    order.push_back(type.layout.is_row_major() ? i : static_cast<size_t>(type.layout.axes[i].dim));
  return order;
}

}  // namespace

TensorMap map_of_dense(size_t buffer, std::vector<Dim> extents) {
  TensorMap map{.buffer = buffer, .extents = std::move(extents)};
  map.box.assign(map.extents.size(), 1);
  map.box[0] = kMapInner;
  Dim stride = 1;
  for (size_t i = 0; i + 1 < map.extents.size(); ++i) map.strides.push_back(stride = stride * map.extents[i]);
  return map;
}

TensorMap map_of_stored(size_t buffer, const TensorType& type) {
  std::vector<Dim> extents;
  for (const size_t dim : storage_order(type)) extents.push_back(type.shape[dim]);
  return map_of_dense(buffer, std::move(extents));
}

size_t storage_position(size_t dim, const TensorType& type) {
  const std::vector<size_t> order = storage_order(type);
  return static_cast<size_t>(std::ranges::find(order, dim) - order.begin());
}

std::string box_copy_signature(std::string_view operand) {
  return fmt::format(
      "void copy_{}_box(u16* to, u32 barrier, const TensorMap* map, const Operands& x, idx batch, idx first, "
      "idx depth)",
      operand);
}

std::string box_coordinates(const TensorType& type, const std::vector<Dim>& index, const IndexScope& scope) {
  std::string coordinates;
  for (const size_t dim : storage_order(type)) coordinates += fmt::format(", {}", scope.text(index[dim]));
  return coordinates;
}

void add_tensor_map(const TensorMap& map, Launch& launch) {
  std::vector<Dim> sizes(kMapSizes, Dim(1));
  std::ranges::copy(map.extents, sizes.begin() + kMapExtents);
  std::ranges::copy(map.strides, sizes.begin() + kMapStrides);
  std::vector<int64_t> constants(kMapConstants, 1);
  constants[kMapBuffer] = static_cast<int64_t>(map.buffer);
  constants[kMapDims] = static_cast<int64_t>(map.extents.size());
  constants[kMapIsWindows] = map.windows ? 1 : 0;
  std::ranges::copy(map.box, constants.begin() + kMapBox);
  if (map.windows) {
    std::ranges::copy(map.windows->steps, constants.begin() + kMapSteps);
    std::ranges::copy(map.windows->lower, constants.begin() + kMapLower);
    std::ranges::copy(map.windows->upper, constants.begin() + kMapUpper);
  }
  launch.sizes.insert(launch.sizes.end(), sizes.begin(), sizes.end());
  launch.constants.insert(launch.constants.end(), constants.begin(), constants.end());
}

}  // namespace ingot::core::cuda
