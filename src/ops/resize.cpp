// SPDX-License-Identifier: Apache-2.0
// Other spatial sizes for [N, C, *spatial]: nearest element, or linear interpolation. Positions are computed
// in floating point exactly as torch does, so that ties round the same way.
#include "ops/resize.h"
#include "ops/ops.h"
#include "ops/samples.h"
#include "ops/window.h"

namespace ingot::core::ops {
namespace {

constexpr Operand kResizeOperands[] = {{"x", DTypeSet::kAny}};
constexpr Operand kInterpolationOperands[] = {{"x", DTypeSet::kFloating}};

Types infer_resize(const Node& node) {
  const auto resize = node.attributes<Resize>();
  TensorType type = infer_same(node)[0];
  require(type.rank() >= 3 && resize.size.size() + 2 == type.rank(), node,
          "x must be [N, C, *spatial], one size per spatial dim");
  require(resize.scale.empty() || resize.scale.size() == resize.size.size(), node,
          "one scale per spatial dim, or none");
  for (size_t i = 2; i < type.rank(); ++i)
    require(type.shape[i] != Dim(0), node, "an empty dim cannot be resized");
  for (size_t i = 0; i < resize.size.size(); ++i) type.shape[i + 2] = resize.size[i];
  return {type};
}

// Operand elements per result element.
Expr step_of(const Resize& resize, size_t i, const Dim& from, DType dtype) {
  if (!resize.scale.empty() && resize.scale[i] > 0) return loops::constant(dtype, 1 / resize.scale[i]);
  return size_value(dtype, from) / size_value(dtype, resize.size[i]);
}

// An integer factor needs no floating point.
std::optional<Dim> whole_place(const Dim& from, const Dim& to, const Dim& index) {
  for (int64_t factor = 1; factor <= 16; ++factor) {
    if (to == from * Dim(factor)) return core::floor_divide(index, factor);
  }
  return std::nullopt;
}

loops::Kernel lower_nearest(const Node& node) {
  const auto resize = node.attributes<Resize>();
  const Shape& from = node.operand_type(0).shape;
  KernelBuilder kernel(node);
  const Index index = kernel.parallel(node.results[0]->type.shape);
  Index at{index[0], index[1]};
  for (size_t i = 0; i < resize.size.size(); ++i) {
    if (const auto place = whole_place(from[i + 2], resize.size[i], index[i + 2])) {
      at.push_back(*place);
      continue;
    }
    const Expr real = size_value(DType::kF32, index[i + 2]) * step_of(resize, i, from[i + 2], DType::kF32);
    const Expr place = whole_position(compute(loops::Unary::kFloor, real), from[i + 2]);
    at.push_back(kernel.bind(smaller(place, loops::index_value(from[i + 2] - 1)), from[i + 2]));
  }
  kernel.store(index, kernel.load(0, at));
  return kernel.finish();
}

// Two neighbours along one dim, and the weight of the second.
struct Neighbours {
  Dim first, second;
  Expr weight;
};
Neighbours neighbours(KernelBuilder& kernel, const Resize& resize, size_t i, const Dim& from,
                      const Dim& index, DType dtype) {
  const Expr at = size_value(dtype, index);
  Expr real;
  if (resize.align_corners) {
    const Expr gaps = size_value(dtype, resize.size[i] - 1);
    const Expr step = size_value(dtype, from - 1) / larger(gaps, number(gaps, 1));
    real = at * step;
  } else {
    real = larger((at + 0.5) * step_of(resize, i, from, dtype) - 0.5, number(at, 0));
  }
  const Expr whole = compute(loops::Unary::kFloor, real);
  const Expr last = loops::index_value(from - 1);
  const Expr first = smaller(whole_position(whole, from), last);
  Neighbours result{kernel.bind(first, from), kernel.bind(smaller(first + 1.0, last), from), nullptr};
  result.weight = smaller(real - loops::convert(dtype, loops::index_value(result.first)), number(real, 1));
  return result;
}

loops::Kernel lower_resize_linear(const Node& node) {
  const auto resize = node.attributes<Resize>();
  const Shape& from = node.operand_type(0).shape;
  KernelBuilder kernel(node);
  const DType dtype = kernel.dtype(0);
  const Index index = kernel.parallel(node.results[0]->type.shape);
  std::vector<Neighbours> sides;
  for (size_t i = 0; i < resize.size.size(); ++i)
    sides.push_back(neighbours(kernel, resize, i, from[i + 2], index[i + 2], dtype));
  Expr total;
  for (size_t corner = 0; corner < size_t{1} << sides.size(); ++corner) {
    Index at{index[0], index[1]};
    Expr weight = loops::constant(dtype, 1);
    for (size_t i = 0; i < sides.size(); ++i) {
      const bool second = (corner >> i) & 1;
      at.push_back(second ? sides[i].second : sides[i].first);
      weight = weight * (second ? sides[i].weight : 1.0 - sides[i].weight);
    }
    const Expr part = kernel.load(0, at) * weight;
    total = total ? total + part : part;
  }
  kernel.store(index, total);
  return kernel.finish();
}

Samples nearest_samples() {
  return {sample({f32({batch(), 2, 3, 4})}, Resize{{6, 8}, {}, false}),
          sample({f32({1, 2, 5})}, Resize{{7}, {}, false}),
          sample({f32({1, 2, length(), 3})}, Resize{{length() * 2, 6}, {2, 2}, false})};
}
Samples resize_linear_samples() {
  return {sample({f32({batch(), 2, 3, 4})}, Resize{{6, 7}, {}, false}),
          sample({f32({1, 2, 5})}, Resize{{9}, {}, true}),
          sample({f32({1, 2, length(), 3})}, Resize{{length() * 2, 6}, {2, 2}, false})};
}

}  // namespace

constinit const Op resize_nearest = {.name = "resize_nearest",
                                     .summary = "another spatial size, each element the nearest of x",
                                     .operands = kResizeOperands,
                                     .attributes = attribute_schema<Resize>(),
                                     .traits = Trait::kView,
                                     .infer = infer_resize,
                                     .lower = lower_nearest,
                                     .samples = nearest_samples};

constinit const Op resize_linear = {
    .name = "resize_linear",
    .summary = "another spatial size, each element between its neighbours in x",
    .operands = kInterpolationOperands,
    .attributes = attribute_schema<Resize>(),
    .traits = Trait::kView,
    .infer = infer_resize,
    .lower = lower_resize_linear,
    .samples = resize_linear_samples};

}  // namespace ingot::core::ops
