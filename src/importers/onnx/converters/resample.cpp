// SPDX-License-Identifier: Apache-2.0
// Images in other sizes, and at other positions.
#include <algorithm>
#include <array>
#include <cmath>

#include "importers/onnx/converters/converters.h"
#include "importers/onnx/converters/resize_weights.h"
#include "ops/axis.h"
#include "ops/grid_sample.h"
#include "ops/resize.h"

namespace ingot::core::onnx {
namespace {

constexpr size_t kRegion = 1, kScales = 2, kSizes = 3;  // inputs of Resize

struct ResizedAxis {
  size_t axis;
  Dim from, to;
  std::optional<double> scale;  // as given
  double start = 0, end = 1;
};

int64_t whole_size(double size) {
  constexpr double kMost = 1 << 30;
  if (!(size >= 0 && size <= kMost)) refuse_node("a size is negative, or very large");
  return static_cast<int64_t>(size);
}

// floor(size * scale), for scales that are simple fractions, or sizes that are known.
Dim scaled_size(const Dim& size, double scale) {
  if (!(scale > 0) || scale > 1e6) refuse_node("a scale is not positive, or very large");
  if (const auto known = size.constant()) return whole_size(std::floor(static_cast<double>(*known) * scale));
  for (int64_t divisor = 1; divisor <= 16; ++divisor) {
    const double whole = scale * static_cast<double>(divisor);
    if (whole == std::floor(whole)) return floor_divide(size * Dim(static_cast<int64_t>(whole)), divisor);
  }
  refuse("a dynamic size times " + std::to_string(scale));
}

// The policies that keep the aspect ratio scale all axes alike.
void keep_ratio(std::vector<ResizedAxis>& axes, const std::string& policy) {
  if (policy != "not_larger" && policy != "not_smaller") return;
  std::vector<double> ratios;
  for (const ResizedAxis& each : axes) {
    if (!each.from.is_constant() || !each.to.is_constant()) refuse("an aspect ratio of dynamic sizes");
    ratios.push_back(static_cast<double>(*each.to.constant()) / static_cast<double>(*each.from.constant()));
  }
  const double scale = policy == "not_larger" ? std::ranges::min(ratios) : std::ranges::max(ratios);
  for (ResizedAxis& each : axes) {
    each.to = whole_size(std::floor(scale * static_cast<double>(*each.from.constant()) + 0.5));
    each.scale = scale;
  }
}

std::vector<ResizedAxis> resized_axes(Call& call, const Shape& shape) {
  std::vector<int64_t> given = call.has_attribute("axes") ? call.attributes("axes") : all_axes(shape.size());
  std::vector<ResizedAxis> axes;
  for (const size_t axis : call.axes(given, shape.size()))
    axes.push_back({axis, shape[axis], shape[axis], {}});
  const std::vector<double> scales = call.has(kScales) ? call.numbers(kScales) : std::vector<double>{};
  const std::vector<Dim> sizes = call.has(kSizes) ? call.dims(kSizes) : std::vector<Dim>{};
  if (scales.size() != axes.size() && sizes.size() != axes.size())
    refuse_node("there must be one scale or one size per axis");
  for (size_t i = 0; i < axes.size(); ++i) {
    if (!scales.empty()) axes[i].scale = scales[i];
    axes[i].to = scales.empty() ? sizes[i] : scaled_size(axes[i].from, scales[i]);
  }
  if (scales.empty()) keep_ratio(axes, call.attribute_text("keep_aspect_ratio_policy", ""));
  if (call.attribute_text("coordinate_transformation_mode", "") == "tf_crop_and_resize") {
    const std::vector<double> region = call.numbers(kRegion);
    if (region.size() != 2 * axes.size()) refuse_node("the region must have two entries per axis");
    for (size_t i = 0; i < axes.size(); ++i) {
      axes[i].start = region[i];
      axes[i].end = region[i + axes.size()];
    }
  }
  return axes;
}

ResizeMode mode_of(Call& call) {
  ResizeMode mode;
  mode.mode = call.attribute_text("mode", "nearest");
  mode.coordinates = call.attribute_text("coordinate_transformation_mode", "half_pixel");
  mode.rounding = call.attribute_text("nearest_mode", "round_prefer_floor");
  mode.antialias = call.flag("antialias");
  mode.excludes_outside = call.flag("exclude_outside");
  mode.cubic_coefficient = call.attribute_number("cubic_coeff_a", -0.75);
  if (mode.mode != "nearest" && mode.mode != "linear" && mode.mode != "cubic")
    refuse_node("there is no mode '" + mode.mode + "'");
  return mode;
}

bool is_whole_upscale(const ResizedAxis& axis) {
  for (int64_t factor = 1; factor <= 16; ++factor) {
    if (axis.to == axis.from * Dim(factor)) return !axis.scale || *axis.scale == static_cast<double>(factor);
  }
  return false;
}

// Whether our operator computes the same: it rounds positions down, without an offset.
bool is_nearest_operator(const ResizeMode& mode, const std::vector<ResizedAxis>& axes) {
  if (mode.mode != "nearest") return false;
  if (mode.coordinates == "asymmetric" && mode.rounding == "floor") return true;
  const bool is_centered = mode.coordinates == "half_pixel" || mode.coordinates == "pytorch_half_pixel";
  const bool rounds = mode.rounding.starts_with("round");
  return is_centered && rounds && std::ranges::all_of(axes, is_whole_upscale);
}

// The corners of the result are those of the operand only if the scale gives a whole number of elements.
bool has_whole_size(const ResizedAxis& axis) {
  if (!axis.scale) return true;
  const auto from = axis.from.constant(), to = axis.to.constant();
  return from && to && *axis.scale * static_cast<double>(*from) == static_cast<double>(*to);
}

bool is_linear_operator(const ResizeMode& mode, const std::vector<ResizedAxis>& axes, DType dtype) {
  if (mode.mode != "linear" || mode.antialias || mode.excludes_outside || !is_floating(dtype)) return false;
  if (mode.coordinates == "align_corners") return std::ranges::all_of(axes, has_whole_size);
  return mode.coordinates == "half_pixel";
}

Value* by_operator(Graph& graph, Value* x, const std::vector<ResizedAxis>& axes, const ResizeMode& mode) {
  ops::Resize resize;
  resize.size.assign(x->type.shape.begin() + 2, x->type.shape.end());
  resize.scale.assign(resize.size.size(), 0);  // 0: from the sizes
  for (const ResizedAxis& each : axes) {
    resize.size[each.axis - 2] = each.to;
    resize.scale[each.axis - 2] = each.scale.value_or(0);
  }
  resize.align_corners = mode.coordinates == "align_corners";
  return graph.call(mode.mode == "nearest" ? ops::resize_nearest : ops::resize_linear, {x}, resize);
}

// x times a matrix along an axis.
Value* multiplied_along(Graph& graph, Value* x, size_t axis, const std::vector<WeightedSources>& rows) {
  const DType dtype = x->type.dtype, computed = dtype == DType::kF64 ? DType::kF64 : DType::kF32;
  const auto from = x->type.shape[axis].constant().value();
  const Tensor matrix = make_tensor(computed, {static_cast<int64_t>(rows.size()), from});
  for (size_t i = 0; i < rows.size(); ++i) {
    for (const auto& [at, weight] : rows[i]) {
      const std::array<int64_t, 2> index{static_cast<int64_t>(i), at};
      write_double(matrix.view(), index, read_double(matrix.view(), index) + weight);
    }
  }
  std::vector<int64_t> order = all_axes(x->type.rank());
  std::swap(order[axis], order.back());
  x = transposed(graph, converted(graph, x, computed), order);
  x = graph.call(ops::linear, {x, graph.add_constant(matrix), nullptr});
  return converted(graph, transposed(graph, x, order), dtype);
}

Value* picked_along(Graph& graph, Value* x, size_t axis, const std::vector<WeightedSources>& rows) {
  const Tensor indices = make_tensor(DType::kI64, {static_cast<int64_t>(rows.size())});
  for (size_t i = 0; i < rows.size(); ++i)
    write_integer(indices.view(), {{static_cast<int64_t>(i)}}, rows[i].empty() ? 0 : rows[i][0].first);
  return graph.call(ops::take, {x, graph.add_constant(indices)}, ops::Axis{static_cast<int64_t>(axis)});
}

// Results outside of the operand have a value of their own.
Value* with_outside(Graph& graph, Value* x, size_t axis, const std::vector<WeightedSources>& rows,
                    double value) {
  if (std::ranges::none_of(rows, &WeightedSources::empty)) return x;
  Shape line(x->type.rank(), 1);
  line[axis] = static_cast<int64_t>(rows.size());
  const Tensor mask = make_tensor(DType::kBool, {static_cast<int64_t>(rows.size())});
  for (size_t i = 0; i < rows.size(); ++i)
    write_integer(mask.view(), {{static_cast<int64_t>(i)}}, rows[i].empty() ? 1 : 0);
  const Term outside(graph, reshaped(graph, graph.add_constant(mask), line)), inside(graph, x);
  return outside.choose(inside.constant(value), inside);
}

void convert_resize(Call& call) {
  Graph& graph = call.graph();
  Value* x = call.tensor(0);
  const ResizeMode mode = mode_of(call);
  std::vector<ResizedAxis> axes = resized_axes(call, x->type.shape);
  const bool crops = mode.coordinates == "tf_crop_and_resize";
  std::erase_if(axes, [&](const ResizedAxis& each) {
    return !crops && each.from == each.to && each.scale.value_or(1) == 1;
  });
  const bool is_spatial = x->type.rank() >= 3 &&
                          std::ranges::all_of(axes, [](const ResizedAxis& each) { return each.axis >= 2; });
  if (!axes.empty() && is_spatial &&
      (is_nearest_operator(mode, axes) || is_linear_operator(mode, axes, x->type.dtype)))
    return call.give(by_operator(graph, x, axes, mode));
  for (const ResizedAxis& each : axes) {
    constexpr int64_t kMost = 1 << 20;
    if (!each.from.is_constant() || !each.to.is_constant()) refuse("this mode with dynamic sizes");
    AxisResize resize{*each.from.constant(), *each.to.constant(), 1, each.start, each.end};
    if (resize.from < 1 || resize.to < 0 || resize.from > kMost || resize.to > kMost)
      refuse_node("a size is wrong");
    resize.scale = each.scale.value_or(static_cast<double>(resize.to) / static_cast<double>(resize.from));
    constexpr int64_t kMostWeights = 1 << 26;  // of a matrix
    if (mode.mode != "nearest" && resize.from * resize.to > kMostWeights)
      refuse("this mode with sizes this large");
    const std::vector<WeightedSources> rows = resize_weights(resize, mode);
    x = mode.mode == "nearest" ? picked_along(graph, x, each.axis, rows)
                               : multiplied_along(graph, x, each.axis, rows);
    x = with_outside(graph, x, each.axis, rows, call.attribute_number("extrapolation_value", 0));
  }
  call.give(x);
}

void convert_grid_sample(Call& call) {
  std::string mode = call.attribute_text("mode", "linear");
  if (mode == "linear") mode = "bilinear";
  if (mode == "cubic") mode = "bicubic";
  const std::string outside = call.attribute_text("padding_mode", "zeros");
  call.give(call.graph().call(ops::grid_sample, {call.tensor(0), call.tensor(1)},
                              ops::GridSample{mode, outside, call.flag("align_corners")}));
}

constexpr auto kResample = std::to_array<Converter>({
    {"GridSample", convert_grid_sample, nullptr, 16},
    {"Resize", convert_resize, nullptr, 11},
});

}  // namespace

std::span<const Converter> resample_converters() { return kResample; }

}  // namespace ingot::core::onnx
