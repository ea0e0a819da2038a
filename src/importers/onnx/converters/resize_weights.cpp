// SPDX-License-Identifier: Apache-2.0
#include "importers/onnx/converters/resize_weights.h"

#include <algorithm>
#include <cmath>

#include "importers/onnx/call.h"

namespace ingot::core::onnx {
namespace {

// The position in the operand of result element `index`.
double source_position(const AxisResize& axis, const std::string& coordinates, int64_t index) {
  const auto at = static_cast<double>(index), from = static_cast<double>(axis.from),
             to = static_cast<double>(axis.to);
  const double centered = (at + 0.5) / axis.scale - 0.5;
  if (coordinates == "asymmetric") return at / axis.scale;
  if (coordinates == "align_corners") {
    const double length = axis.scale * from;  // of the whole result, which may end before
    return length == 1 ? 0 : at * (from - 1) / (length - 1);
  }
  if (coordinates == "half_pixel") return centered;
  if (coordinates == "pytorch_half_pixel") return axis.to == 1 ? -0.5 : centered;
  if (coordinates == "half_pixel_symmetric") return from / 2 * (1 - to / (axis.scale * from)) + centered;
  if (coordinates == "tf_crop_and_resize") {
    const double width = (axis.end - axis.start) * (from - 1);
    return axis.start * (from - 1) + (axis.to == 1 ? width / 2 : at * width / (to - 1));
  }
  refuse_node("there is no coordinate_transformation_mode '" + coordinates + "'");
}

double nearest(double position, const std::string& rounding) {
  if (rounding == "floor") return std::floor(position);
  if (rounding == "ceil") return std::ceil(position);
  if (rounding == "round_prefer_floor") return std::ceil(position - 0.5);
  if (rounding == "round_prefer_ceil") return std::floor(position + 0.5);
  refuse_node("there is no nearest_mode '" + rounding + "'");
}

double linear_filter(double distance) { return std::max(0.0, 1 - std::abs(distance)); }

double cubic_filter(double distance, double a) {
  const double x = std::abs(distance);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return 0;
}

WeightedSources interpolated(const AxisResize& axis, const ResizeMode& mode, double position) {
  const bool is_cubic = mode.mode == "cubic";
  // When shrinking, antialiasing widens the filter to all elements that a result covers.
  const double shrinking = mode.antialias ? std::min(axis.scale, 1.0) : 1.0;
  constexpr double kFar = 1 << 30;  // outside of every axis
  const double whole = std::clamp(std::floor(position), -kFar, kFar), ratio = position - std::floor(position);
  const auto reach = static_cast<int64_t>(std::floor(-(is_cubic ? 2 : 1) / shrinking)) + 1;
  WeightedSources sources;
  double total = 0;
  for (int64_t k = reach; k <= 1 - reach; ++k) {
    const double distance = (static_cast<double>(k) - ratio) * shrinking;
    const auto at = static_cast<int64_t>(whole) + k;
    double weight = is_cubic ? cubic_filter(distance, mode.cubic_coefficient) : linear_filter(distance);
    if (mode.excludes_outside && (at < 0 || at >= axis.from)) weight = 0;
    total += weight;
    sources.emplace_back(std::clamp(at, int64_t{0}, axis.from - 1), weight);
  }
  if ((mode.antialias || mode.excludes_outside) && total != 0) {
    for (auto& [at, weight] : sources) weight /= total;
  }
  return sources;
}

}  // namespace

std::vector<WeightedSources> resize_weights(const AxisResize& axis, const ResizeMode& mode) {
  std::vector<WeightedSources> rows;
  for (int64_t i = 0; i < axis.to; ++i) {
    const double position = source_position(axis, mode.coordinates, i);
    const bool crops = mode.coordinates == "tf_crop_and_resize";
    if (!std::isfinite(position)) refuse_node("a scale is 0 or not finite");
    if (crops && (position < 0 || position > static_cast<double>(axis.from - 1))) {
      rows.emplace_back();
    } else if (mode.mode == "nearest") {
      const double at = std::clamp(nearest(position, mode.rounding), 0.0, static_cast<double>(axis.from - 1));
      rows.push_back({{static_cast<int64_t>(at), 1.0}});
    } else {
      rows.push_back(interpolated(axis, mode, position));
    }
  }
  return rows;
}

}  // namespace ingot::core::onnx
