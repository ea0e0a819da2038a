// SPDX-License-Identifier: Apache-2.0
// Discrete Fourier transforms along one axis, of complex numbers as two tensors. `roots` is [2, n]: the
// cosines and the sines of 2 pi k / n. It depends on n alone, so that for a known n it belongs to the init
// program.
#include "ops/fourier.h"
#include "ops/infer.h"
#include "ops/ops.h"
#include "ops/samples.h"

namespace ingot::core::ops {
namespace {

constexpr Operand kComplexOperands[] = {
    {"re", DTypeSet::kFloating}, {"im", DTypeSet::kFloating}, {"roots", DTypeSet::kFloating}};
constexpr Operand kRealOperands[] = {{"x", DTypeSet::kFloating}, {"roots", DTypeSet::kFloating}};

void require_numbers(const Node& node, int64_t axis) {
  require_same_dtype(node);
  const DType dtype = node.operand_type(0).dtype;
  require(dtype == DType::kF32 || dtype == DType::kF64, node, "the dtype must be f32 or f64");
  require_axis(node, axis, node.operand_type(0).rank());
}

// The first operand with another extent along the axis.
TensorType with_extent(const Node& node, int64_t axis, const Dim& extent) {
  TensorType type = node.operand_type(0);
  type.shape[static_cast<size_t>(axis)] = extent;
  return {type.dtype, std::move(type.shape), {}};
}

Types infer_fourier(const Node& node) {
  const int64_t axis = node.attributes<Fourier>().axis;
  require_numbers(node, axis);
  const Shape& shape = node.operand_type(0).shape;
  require_shape(node, 1, shape);
  require_shape(node, 2, {2, shape[static_cast<size_t>(axis)]});
  const TensorType type = with_extent(node, axis, shape[static_cast<size_t>(axis)]);
  return {type, type};
}
Types infer_real_fourier(const Node& node) {
  const int64_t axis = node.attributes<RealFourier>().axis;
  require_numbers(node, axis);
  const Dim length = node.operand_type(0).shape[static_cast<size_t>(axis)];
  require_shape(node, 1, {2, length});
  const TensorType half = with_extent(node, axis, core::floor_divide(length, 2) + 1);
  return {half, half};
}
Types infer_inverse_real_fourier(const Node& node) {
  const int64_t axis = node.attributes<RealFourier>().axis;
  require_numbers(node, axis);
  const Shape &half = node.operand_type(0).shape, &roots = node.operand_type(2).shape;
  require_shape(node, 1, half);
  require(roots.size() == 2, node, "the roots must be [2, n]");
  require_shape(node, 2, {2, roots[1]});
  const Dim count = core::floor_divide(roots[1], 2) + 1;
  require(half[static_cast<size_t>(axis)] == count, node, "half a spectrum has n / 2 + 1 numbers");
  return {with_extent(node, axis, roots[1])};
}

Samples fourier_samples() {
  return {sample({f32({3, 8}), f32({3, 8}), f32({2, 8})}, Fourier{1, false, 1}),
          sample({f32({6, batch()}), f32({6, batch()}), f32({2, 6})}, Fourier{0, true, 0.5})};
}
Samples real_fourier_samples() {
  return {sample({f32({3, 8}), f32({2, 8})}, RealFourier{1, 1}),
          sample({f32({2, 5, batch()}), f32({2, 5})}, RealFourier{1, 0.25})};
}
Samples inverse_real_fourier_samples() {
  return {sample({f32({3, 5}), f32({3, 5}), f32({2, 8})}, RealFourier{1, 1}),
          sample({f32({2, 3, batch()}), f32({2, 3, batch()}), f32({2, 5})}, RealFourier{1, 0.25})};
}

}  // namespace

constinit const Op fourier = {
    .name = "fourier",
    .summary =
        "the sum over j of x[j] exp(-2 pi i j k / n) for each k along an axis, times `scale`; its real "
        "and its imaginary parts",
    .operands = kComplexOperands,
    .attributes = attribute_schema<Fourier>(),
    .infer = infer_fourier,
    .routine = "fourier",
    .samples = fourier_samples};
constinit const Op real_fourier = {
    .name = "real_fourier",
    .summary = "the first n / 2 + 1 numbers of the `fourier` of reals; the others repeat them, conjugated",
    .operands = kRealOperands,
    .attributes = attribute_schema<RealFourier>(),
    .infer = infer_real_fourier,
    .routine = "real_fourier",
    .samples = real_fourier_samples};
constinit const Op inverse_real_fourier = {
    .name = "inverse_real_fourier",
    .summary =
        "the n reals whose `fourier` begins with these n / 2 + 1 numbers, times n and `scale`; "
        "imaginary parts of the first number, and for even n of the last, are ignored",
    .operands = kComplexOperands,
    .attributes = attribute_schema<RealFourier>(),
    .infer = infer_inverse_real_fourier,
    .routine = "inverse_real_fourier",
    .samples = inverse_real_fourier_samples};

}  // namespace ingot::core::ops
