// SPDX-License-Identifier: Apache-2.0
// Where the elements of a resized axis come from: Resize is linear along each axis, and axes do not interact.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace ingot::core::onnx {

struct AxisResize {
  int64_t from = 0, to = 0;   // sizes
  double scale = 1;           // as given, or to / from
  double start = 0, end = 1;  // of the region to crop, for tf_crop_and_resize
};

struct ResizeMode {
  std::string mode = "nearest", coordinates = "half_pixel", rounding = "round_prefer_floor";
  bool antialias = false, excludes_outside = false;
  double cubic_coefficient = -0.75;
};

// One per result element: elements of the operand with their weights; none: it is outside of the operand.
using WeightedSources = std::vector<std::pair<int64_t, double>>;
std::vector<WeightedSources> resize_weights(const AxisResize& axis, const ResizeMode& mode);

}  // namespace ingot::core::onnx
