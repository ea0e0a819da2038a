// SPDX-License-Identifier: Apache-2.0
// Images of another size by weighted neighbours. Each dim is a product with a matrix of weights, which is
// constant if the sizes are.
#include <algorithm>
#include <array>
#include <cmath>

#include "importers/aten/converters/building.h"
#include "importers/aten/converters/converters.h"

namespace ingot::core::aten {
namespace {

constexpr int64_t kMostWeights = int64_t{1} << 24;  // of a matrix of weights
constexpr double kLargestStep = 0x1p31;             // times a position it fits a 64-bit integer

// One dim: number of input elements, number of output elements, and the distance between outputs.
struct Axis {
  int64_t from, to;
  double step;
  bool align;
};
// Weights [to, from], row-major.
using Weights = std::vector<double>;

double cubic(double x, double a) {
  x = std::abs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((x - 5) * x + 8) * x * a - 4 * a : 0;
}
double smooth_cubic(double x) { return cubic(x, -0.5); }
double triangle(double x) { return std::max(0.0, 1 - std::abs(x)); }

// Four neighbours; those beyond the border are clamped to the outermost element.
Weights cubic_weights(const Axis& axis) {
  Weights weights(static_cast<size_t>(axis.to * axis.from));
  for (int64_t i = 0; i < axis.to; ++i) {
    const double place =
        axis.align ? static_cast<double>(i) * axis.step : (static_cast<double>(i) + 0.5) * axis.step - 0.5;
    const double first = std::floor(place);
    for (int k = -1; k < 3; ++k) {
      const auto at = std::clamp(static_cast<int64_t>(first) + k, int64_t{0}, axis.from - 1);
      weights[static_cast<size_t>(i * axis.from + at)] += cubic(place - first - k, -0.75);
    }
  }
  return weights;
}
// All elements under a filter that widens as the image shrinks.
template <double (*kFilter)(double), int kReach>
Weights smooth_weights(const Axis& axis) {
  Weights weights(static_cast<size_t>(axis.to * axis.from));
  const double grown = std::max(axis.step, 1.0), reach = kReach * grown;
  for (int64_t i = 0; i < axis.to; ++i) {
    const double center = axis.step * (static_cast<double>(i) + 0.5);
    const int64_t begin = std::max(static_cast<int64_t>(center - reach + 0.5), int64_t{0});
    const int64_t end = std::min(static_cast<int64_t>(center + reach + 0.5), axis.from);
    double total = 0;
    for (int64_t k = begin; k < end; ++k) total += kFilter((static_cast<double>(k) - center + 0.5) / grown);
    for (int64_t k = begin; k < end; ++k)
      weights[static_cast<size_t>(i * axis.from + k)] =
          kFilter((static_cast<double>(k) - center + 0.5) / grown) / total;
  }
  return weights;
}

// Scales passed by the call, one per dim; 0 if the sizes determine them.
std::vector<double> given_scales(Call& call) {
  std::vector<double> scales;
  for (const char* name : {"scales_h", "scales_w"}) {
    if (call.has(name)) scales.push_back(call.number(name));
  }
  if (call.has("scale_factors")) scales = call.numbers("scale_factors");
  if (scales.size() != 2) scales.assign(2, 0);
  return scales;
}
Axis axis_of(Call& call, const Dim& from, const Dim& to, double scale) {
  if (!from.is_constant() || !to.is_constant()) call.refuse("sizes that are not known");
  Axis axis{*from.constant(), *to.constant(), 0, call.has("align_corners") && call.flag("align_corners")};
  if (axis.align)
    axis.step = axis.to > 1 ? static_cast<double>(axis.from - 1) / static_cast<double>(axis.to - 1) : 0;
  else
    axis.step = scale > 0 ? 1 / scale : static_cast<double>(axis.from) / static_cast<double>(axis.to);
  call.require(axis.from > 0 && axis.from <= kMostWeights && axis.to >= 0 && axis.to <= kMostWeights,
               "an empty image, or a very large one");
  call.require(axis.step < kLargestStep, "a very large scale");
  return axis;
}

core::Value* matrix_of(Call& call, const Axis& axis, const Weights& weights, DType dtype) {
  Tensor matrix = make_tensor(dtype, {axis.to, axis.from});
  for (int64_t i = 0; i < axis.to; ++i) {
    for (int64_t k = 0; k < axis.from; ++k)
      write_double(matrix.view(), std::array{i, k}, weights[static_cast<size_t>(i * axis.from + k)]);
  }
  return call.graph().add_constant(std::move(matrix));
}
template <Weights (*kWeights)(const Axis&)>
void resample(Call& call) {
  core::Value* x = call.tensor(call.has("input") ? "input" : "self");
  const Shape &from = x->type.shape, &to = call.result_meta().shape;
  const std::vector<double> scales = given_scales(call);
  const DType dtype = x->type.dtype;
  if (!is_floating(dtype)) call.refuse("integers, for which torch rounds weights differently");
  call.require(from.size() == 4 && to.size() == 4, "an image of unexpected rank");
  const Axis rows = axis_of(call, from[2], to[2], scales[0]),
             columns = axis_of(call, from[3], to[3], scales[1]);
  for (const Axis& axis : {rows, columns})
    call.require(axis.from * axis.to <= kMostWeights, "images whose weights need too much memory");
  x = emit(call, ops::linear, {x, matrix_of(call, columns, kWeights(columns), dtype), nullptr});
  x = swapped(call, x, 2, 3);
  x = emit(call, ops::linear, {x, matrix_of(call, rows, kWeights(rows), dtype), nullptr});
  call.give(swapped(call, x, 2, 3));
}

constexpr Converter kResampleConverters[] = {
    {"aten._upsample_bicubic2d_aa.default", resample<smooth_weights<smooth_cubic, 2>>},
    {"aten._upsample_bicubic2d_aa.vec", resample<smooth_weights<smooth_cubic, 2>>},
    {"aten._upsample_bilinear2d_aa.default", resample<smooth_weights<triangle, 1>>},
    {"aten._upsample_bilinear2d_aa.vec", resample<smooth_weights<triangle, 1>>},
    {"aten.upsample_bicubic2d.default", resample<cubic_weights>, kComposed},
    {"aten.upsample_bicubic2d.vec", resample<cubic_weights>, kComposed},
};

}  // namespace

std::span<const Converter> resample_converters() { return kResampleConverters; }

}  // namespace ingot::core::aten
