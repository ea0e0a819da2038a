// SPDX-License-Identifier: Apache-2.0
#include "ops/convolution.h"
#include "ops/ops.h"
#include "ops/samples.h"
#include "ops/window.h"

namespace ingot::core::ops {
namespace {

constexpr Operand kConvolutionOperands[] = {
    {"x", DTypeSet::kFloating},
    {"weight", DTypeSet::kFloating},
    {.name = "bias", .dtypes = DTypeSet::kFloating, .optional = true}};

constexpr Operand kIntegerOperands[] = {{"x", DTypeSet::kInteger}, {"weight", DTypeSet::kInteger}};

void require_convolution(const Node& node, int64_t groups) {
  const Shape &x = node.operand_type(0).shape, &weight = node.operand_type(1).shape;
  require(x.size() >= 3, node, "x must be [N, C, *spatial]");
  require_rank(node, 1, x.size());
  const auto outputs = weight[0].constant();
  require(groups >= 1 && outputs && *outputs % groups == 0, node,
          "channels must be a multiple of the groups");
}

Shape convolved_shape(const Node& node, const Convolution& convolution) {
  require_convolution(node, convolution.groups);
  const TensorType &x = node.operand_type(0), &weight = node.operand_type(1);
  require_window_attributes(node, x.rank() - 2, convolution.stride, convolution.padding,
                            convolution.dilation);
  if (x.shape[1] != weight.shape[1] * Dim(convolution.groups))
    fail(node,
         "x " + to_string(x.shape) + " and weight " + to_string(weight.shape) + " disagree on channels");
  if (node.has_operand(2)) require_shape(node, 2, {weight.shape[0]});
  Shape shape{x.shape[0], weight.shape[0]};
  for (size_t i = 0; i + 2 < x.rank(); ++i) {
    shape.push_back(window_count(x.shape[i + 2], weight.shape[i + 2], convolution.stride[i],
                                 convolution.padding[i], convolution.dilation[i], false));
  }
  return shape;
}
Types infer_convolution(const Node& node) {
  require_same_dtype(node);
  return {{node.operand_type(0).dtype, convolved_shape(node, node.attributes<Convolution>()), {}}};
}
Types infer_integer_convolution(const Node& node) {
  const DType dtype = node.operand_type(0).dtype;
  require(dtype == DType::kU8 || dtype == DType::kI8, node, "x must be u8 or i8");
  require(node.operand_type(1).dtype == DType::kI8, node, "the weight must be i8");
  const auto convolution = node.attributes<IntegerConvolution>();
  const bool fits = dtype == DType::kU8 ? convolution.outside >= 0 && convolution.outside <= 255
                                        : convolution.outside >= -128 && convolution.outside <= 127;
  require(fits, node, "the padding must be a number of the dtype of x");
  return {{DType::kI32, convolved_shape(node, convolution.window()), {}}};
}

// Products and sums in `dtype`; elements of the padding are `outside`.
loops::Kernel lower_windows(const Node& node, const Convolution& convolution, DType dtype, int64_t outside) {
  const Shape &x = node.operand_type(0).shape, &weight = node.operand_type(1).shape;
  KernelBuilder kernel(node);
  const Index index = kernel.parallel(node.results[0]->type.shape);
  const StageLoops inner = kernel.loops(Shape(weight.begin() + 1, weight.end()));
  const WindowElement element =
      window_element(spatial_dims(x), Index(index.begin() + 2, index.end()),
                     Index(inner.index.begin() + 1, inner.index.end()), convolution.stride,
                     convolution.padding, convolution.dilation, false);
  const Dim group = core::floor_divide(index[1], core::floor_divide(weight[0], convolution.groups));
  Index at{index[0], convolution.groups == 1 ? inner.index[0] : group * weight[1] + inner.index[0]};
  at.insert(at.end(), element.place.begin(), element.place.end());
  Index at_weight{index[1]};
  at_weight.insert(at_weight.end(), inner.index.begin(), inner.index.end());
  const Expr value = loops::convert(dtype, kernel.load(0, at));
  const Expr product = guarded(element.guard, value, number(value, static_cast<double>(outside))) *
                       loops::convert(dtype, kernel.load(1, at_weight));
  const Expr sum = kernel.reduce("sum", loops::Combine::kAdd, inner, product);
  kernel.store(index, kernel.has(2) ? sum + kernel.load(2, {index[1]}) : sum);
  return kernel.finish();
}
loops::Kernel lower_convolution(const Node& node) {
  const DType dtype = loops::arithmetic_dtype(node.operand_type(0).dtype);
  return lower_windows(node, node.attributes<Convolution>(), dtype, 0);
}
loops::Kernel lower_integer_convolution(const Node& node) {
  const auto convolution = node.attributes<IntegerConvolution>();
  return lower_windows(node, convolution.window(), DType::kI32, convolution.outside);
}

// Weight is [C, O / groups, *kernel]; the transpose of `convolution`.
Types infer_transposed_convolution(const Node& node) {
  const auto convolution = node.attributes<ConvolutionTranspose>();
  require_same_dtype(node);
  require_convolution(node, convolution.groups);
  const TensorType &x = node.operand_type(0), &weight = node.operand_type(1);
  require_window_attributes(node, x.rank() - 2, convolution.stride, convolution.padding,
                            convolution.dilation);
  require(convolution.output_padding.size() == x.rank() - 2, node,
          "the output padding needs one entry per spatial dim");
  if (x.shape[1] != weight.shape[0])
    fail(node,
         "x " + to_string(x.shape) + " and weight " + to_string(weight.shape) + " disagree on channels");
  const Dim outputs = weight.shape[1] * Dim(convolution.groups);
  if (node.has_operand(2)) require_shape(node, 2, {outputs});
  Shape shape{x.shape[0], outputs};
  for (size_t i = 0; i + 2 < x.rank(); ++i) {
    shape.push_back((x.shape[i + 2] - 1) * Dim(convolution.stride[i]) - 2 * convolution.padding[i] +
                    Dim(convolution.dilation[i]) * (weight.shape[i + 2] - 1) + convolution.output_padding[i] +
                    1);
  }
  return {{x.dtype, std::move(shape), {}}};
}

// Computed as a gather: each result sums the inputs whose windows reach it.
loops::Kernel lower_transposed_convolution(const Node& node) {
  const auto convolution = node.attributes<ConvolutionTranspose>();
  const Shape &x = node.operand_type(0).shape, &weight = node.operand_type(1).shape;
  KernelBuilder kernel(node);
  const Index index = kernel.parallel(node.results[0]->type.shape);
  const Dim group_inputs = core::floor_divide(x[1], convolution.groups);
  Shape reduced{group_inputs};
  reduced.insert(reduced.end(), weight.begin() + 2, weight.end());
  const StageLoops inner = kernel.loops(reduced);
  const Dim channel = core::floor_divide(index[1], weight[1]) * group_inputs + inner.index[0];
  Index at{index[0], channel}, at_weight{channel, core::modulo(index[1], weight[1])};
  Expr guard;
  for (size_t i = 0; i + 2 < x.size(); ++i) {
    const Dim reach =
        index[i + 2] + Dim(convolution.padding[i]) - inner.index[i + 1] * Dim(convolution.dilation[i]);
    const Dim place = core::floor_divide(reach, convolution.stride[i]);
    const Expr remainder = loops::index_value(core::modulo(reach, convolution.stride[i]));
    const Expr hit = both(equal_to(remainder, number(remainder, 0)), inside(place, 0, x[i + 2]));
    guard = guard ? both(guard, hit) : hit;
    at.push_back(place);
    at_weight.push_back(inner.index[i + 1]);
  }
  // Weights that reach no input contribute nothing, even if they are infinite.
  const Expr product = kernel.load(0, at) * kernel.load(1, at_weight);
  const Expr reached = loops::select(guard, product, number(product, 0));
  const Expr sum = kernel.reduce("sum", loops::Combine::kAdd, inner, reached);
  kernel.store(index, kernel.has(2) ? sum + kernel.load(2, {index[1]}) : sum);
  return kernel.finish();
}

Samples convolution_samples() {
  return {
      sample({f32({batch(), 3, 7, 6}), f32({4, 3, 3, 2}), f32({4})}, Convolution{{2, 1}, {1, 0}, {1, 2}, 1}),
      sample({f32({1, 4, 9}), f32({6, 2, 3})}, Convolution{{1}, {1}, {1}, 2}),
      sample({f32({1, 2, 3, 4, 4}), f32({2, 1, 2, 2, 2})}, Convolution{{1, 1, 1}, {0, 0, 0}, {1, 1, 1}, 2})};
}
Samples integer_convolution_samples() {
  const auto image = [](Shape shape) { return tensor(DType::kU8, std::move(shape), 0, 255); };
  const auto weight = [](Shape shape) { return tensor(DType::kI8, std::move(shape), -128, 127); };
  return {
      sample({image({batch(), 4, 7, 6}), weight({5, 4, 3, 2})},
             IntegerConvolution{{2, 1}, {1, 0}, {1, 2}, 1, 7}),
      sample({weight({1, 4, 9}), weight({6, 2, 3})}, IntegerConvolution{{1}, {1}, {1}, 2, -3}),
      sample({image({2, 8, 5, 5}), weight({20, 8, 1, 1})}, IntegerConvolution{{1, 1}, {0, 0}, {1, 1}, 1, 0}),
      sample({image({1, 36, 4, 5}), weight({3, 36, 3, 3})},
             IntegerConvolution{{1, 1}, {1, 1}, {1, 1}, 1, 200})};
}
Samples transposed_convolution_samples() {
  return {sample({f32({batch(), 3, 4, 5}), f32({3, 2, 3, 3}), f32({2})},
                 ConvolutionTranspose{{2, 1}, {1, 0}, {1, 0}, {1, 1}, 1}),
          sample({f32({1, 4, 5}), f32({4, 3, 2})}, ConvolutionTranspose{{3}, {0}, {0}, {2}, 2})};
}

}  // namespace

constinit const Op convolution = {.name = "convolution",
                                  .summary = "sum of products over sliding windows, in groups of channels",
                                  .operands = kConvolutionOperands,
                                  .attributes = attribute_schema<Convolution>(),
                                  .traits = Trait::kContraction | Trait::kReduction,
                                  .infer = infer_convolution,
                                  .lower = lower_convolution,
                                  .samples = convolution_samples};

constinit const Op integer_convolution = {
    .name = "integer_convolution",
    .summary = "convolution of u8 or i8 with i8 weights, without bias, with sums in i32",
    .operands = kIntegerOperands,
    .attributes = attribute_schema<IntegerConvolution>(),
    .traits = Trait::kContraction | Trait::kReduction,
    .infer = infer_integer_convolution,
    .lower = lower_integer_convolution,
    .samples = integer_convolution_samples};

constinit const Op convolution_transpose = {
    .name = "convolution_transpose",
    .summary = "transposed convolution: each element times the weight, added to a window of the result",
    .operands = kConvolutionOperands,
    .attributes = attribute_schema<ConvolutionTranspose>(),
    .traits = Trait::kContraction | Trait::kReduction,
    .infer = infer_transposed_convolution,
    .lower = lower_transposed_convolution,
    .samples = transposed_convolution_samples};

}  // namespace ingot::core::ops
