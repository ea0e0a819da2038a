// SPDX-License-Identifier: Apache-2.0
// Convolutions and pooling. Our operators pad both sides alike; other paddings are nodes of their own.
#include "importers/onnx/converters/windows.h"

#include <algorithm>
#include <array>
#include <limits>

#include "importers/onnx/converters/converters.h"
#include "ops/concat.h"
#include "ops/convolution.h"
#include "ops/pool.h"
#include "ops/reduce.h"

namespace ingot::core::onnx {
namespace {

std::vector<int64_t> kernel_of(const Shape& weight) {
  std::vector<int64_t> kernel;
  for (const Dim& dim : std::span(weight).subspan(2)) {
    if (!dim.is_constant()) refuse("the size of the kernel is not fixed");
    kernel.push_back(*dim.constant());
  }
  return kernel;
}

Value* convolved(Call& call, Value* x, Value* weight, Value* bias) {
  Graph& graph = call.graph();
  if (x->type.rank() < 3 || weight->type.rank() != x->type.rank())
    refuse_node("the operands have wrong ranks");
  const Windows windows = windows_of(call, x->type.shape, kernel_of(weight->type.shape));
  const bool is_even = windows.is_even();
  if (!is_even) x = padded(graph, x, windows, 0);
  const std::vector<int64_t> padding =
      is_even ? windows.even() : std::vector<int64_t>(windows.stride.size(), 0);
  return graph.call(
      ops::convolution, {x, weight, bias},
      ops::Convolution{windows.stride, padding, windows.dilation, call.attribute_integer("group", 1)});
}

void convert_convolution(Call& call) {
  call.give(convolved(call, call.tensor(0), call.tensor(1), call.optional_tensor(2)));
}

// Products of bytes and their sums are exact in f64.
void convert_integer_convolution(Call& call) {
  Graph& graph = call.graph();
  const auto centered = [&](size_t value, size_t zero_point, bool is_weight) {
    Term x(graph, converted(graph, call.tensor(value), DType::kF64));
    if (!call.has(zero_point)) return static_cast<Value*>(x);
    Value* zero = converted(graph, call.tensor(zero_point), DType::kF64);
    if (is_weight && zero->type.rank() == 1 && call.rank(value) > 0) {
      Shape channels(call.rank(value), 1);
      channels[0] = zero->type.shape[0];
      zero = reshaped(graph, zero, channels);
    }
    return static_cast<Value*>(x - Term(graph, zero));
  };
  call.give(
      converted(graph, convolved(call, centered(0, 2, false), centered(1, 3, true), nullptr), DType::kI32));
}

// How much of the full result is cut off at both ends.
struct Cut {
  Dim low, high;
};

Cut cut_of(Call& call, const Windows& windows, size_t i, const Dim& full, const Dim& input) {
  const std::vector<int64_t> wanted = call.attributes("output_shape");
  const std::string automatic = call.attribute_text("auto_pad", "NOTSET");
  const bool is_same = automatic == "SAME_UPPER" || automatic == "SAME_LOWER";
  if (wanted.empty() && !is_same) return {windows.low[i], windows.high[i]};
  const size_t spatial = windows.stride.size();
  if (!wanted.empty() && wanted.size() < spatial) refuse_node("output_shape has too few entries");
  const Dim size = wanted.empty() ? input * Dim(windows.stride[i]) : Dim(wanted[wanted.size() - spatial + i]);
  const Dim total = full - size, half = floor_divide(total, 2);
  return automatic == "SAME_UPPER" ? Cut{half, total - half} : Cut{total - half, half};
}

void convert_transposed_convolution(Call& call) {
  Graph& graph = call.graph();
  Value *x = call.tensor(0), *weight = call.tensor(1);
  if (x->type.rank() < 3 || weight->type.rank() != x->type.rank())
    refuse_node("the operands have wrong ranks");
  const size_t spatial = x->type.rank() - 2;
  const Windows windows = windows_of(call, {}, kernel_of(weight->type.shape));
  ops::ConvolutionTranspose attributes{windows.stride, std::vector<int64_t>(spatial, 0),
                                       call.attributes("output_padding"), windows.dilation,
                                       call.attribute_integer("group", 1)};
  if (attributes.output_padding.empty()) attributes.output_padding.assign(spatial, 0);
  Value* full = graph.call(ops::convolution_transpose, {x, weight, call.optional_tensor(2)}, attributes);
  for (size_t i = 0; i < spatial; ++i) {
    const Dim size = full->type.shape[i + 2];
    const Cut cut = cut_of(call, windows, i, size, x->type.shape[i + 2]);
    if (cut.low.constant().value_or(0) < 0 || cut.high.constant().value_or(0) < 0)
      refuse("an output that is larger than what the windows reach");
    full = sliced(graph, full, i + 2, cut.low, size - cut.high);
  }
  call.give(full);
}

std::vector<int64_t> pool_kernel(Call& call) {
  const std::vector<int64_t> kernel = call.attributes("kernel_shape");
  if (call.rank(0) < 3 || kernel.size() + 2 != call.rank(0))
    refuse_node("kernel_shape needs one entry per spatial dim");
  return kernel;
}

double lowest_of(DType dtype) {
  switch (dtype) {
    case DType::kU8:
      return 0;
    case DType::kI8:
      return std::numeric_limits<int8_t>::lowest();
    default:
      return -std::numeric_limits<double>::infinity();
  }
}

// Indices count through the whole tensor, ours through the spatial dims.
Value* whole_indices(Graph& graph, Value* indices, const Shape& shape) {
  const size_t rank = shape.size();
  Shape planes(rank, 1);
  planes[0] = shape[0];
  planes[1] = shape[1];
  const Term plane(graph, reshaped(graph, counting(graph, shape[0] * shape[1]), planes));
  const Term size(graph, size_scalar(graph, product(std::span(shape).subspan(2)), DType::kI64));
  return Term(graph, indices) + plane * size;
}

void convert_max_pool(Call& call) {
  Graph& graph = call.graph();
  Value* x = call.tensor(0);
  const Shape shape = x->type.shape;
  const Windows windows = windows_of(call, shape, pool_kernel(call));
  ops::MaxPool pool{windows.kernel, windows.stride, {}, windows.dilation, call.flag("ceil_mode")};
  const bool fits = windows.is_even() && windows.is_within_half();
  if (!fits) x = padded(graph, x, windows, lowest_of(x->type.dtype));
  pool.padding = fits ? windows.even() : std::vector<int64_t>(windows.stride.size(), 0);
  call.give(0, graph.call(ops::max_pool, {x}, pool));
  if (!call.wants(1)) return;
  if (!fits) refuse("indices of windows with this padding");
  if (call.attribute_integer("storage_order", 0) != 0) refuse("indices in column-major order");
  call.give(1, whole_indices(graph, graph.call(ops::max_pool_indices, {x}, pool), shape));
}

Value* window_sums(Graph& graph, Value* x, const Windows& windows, bool ceil_mode) {
  if (std::ranges::any_of(windows.dilation, [](int64_t step) { return step != 1; }))
    refuse("dilated averages");
  ops::AveragePool pool{windows.kernel, windows.stride, std::vector<int64_t>(windows.stride.size(), 0),
                        ceil_mode,      true,           1};
  return graph.call(ops::average_pool, {x}, pool);
}

void convert_average_pool(Call& call) {
  Graph& graph = call.graph();
  Value* x = call.tensor(0);
  const Windows windows = windows_of(call, x->type.shape, pool_kernel(call));
  const bool ceil_mode = call.flag("ceil_mode"), counts = call.flag("count_include_pad");
  const bool is_plain = std::ranges::all_of(windows.dilation, [](int64_t step) { return step == 1; });
  if (is_plain && windows.is_even() && windows.is_within_half()) {
    const ops::AveragePool pool{windows.kernel, windows.stride, windows.even(), ceil_mode, counts, 0};
    return call.give(graph.call(ops::average_pool, {x}, pool));
  }
  // Sums of the padded tensor, divided by sums of ones where elements count.
  Shape plane = x->type.shape;
  plane[0] = plane[1] = 1;
  const Term sums(graph, window_sums(graph, padded(graph, x, windows, 0), windows, ceil_mode));
  const Term ones(graph, padded(graph, filled(graph, plane, 1, x->type.dtype), windows, counts ? 1 : 0));
  call.give(sums / Term(graph, window_sums(graph, ones, windows, ceil_mode)));
}

void convert_lp_pool(Call& call) {
  Graph& graph = call.graph();
  const Term x = Term(graph, call.tensor(0)).apply(ops::absolute);
  const auto order = static_cast<double>(call.attribute_integer("p", 2));
  const Windows windows = windows_of(call, static_cast<Value*>(x)->type.shape, pool_kernel(call));
  const Term powers = x.apply(ops::power, x.constant(order));
  const Term sums(graph,
                  window_sums(graph, padded(graph, powers, windows, 0), windows, call.flag("ceil_mode")));
  call.give(sums.apply(ops::power, sums.constant(1 / order)));
}

// Over all spatial dims.
void convert_global(Call& call) {
  Value* x = call.tensor(0);
  if (x->type.rank() < 3) refuse_node("the input has no spatial dims");
  std::vector<int64_t> axes = all_axes(x->type.rank());
  axes.erase(axes.begin(), axes.begin() + 2);
  call.give(call.graph().call(call.op(), {x}, ops::Reduce{axes, true}));
}

constexpr auto kWindow = std::to_array<Converter>({
    {"AveragePool", convert_average_pool, nullptr, 7},
    {"Conv", convert_convolution},
    {"ConvInteger", convert_integer_convolution, nullptr, 10},
    {"ConvTranspose", convert_transposed_convolution},
    {"GlobalAveragePool", convert_global, &ops::mean},
    {"GlobalMaxPool", convert_global, &ops::reduce_maximum},
    {"LpPool", convert_lp_pool, nullptr, 2},
    {"MaxPool", convert_max_pool},
});

}  // namespace

std::span<const Converter> window_converters() { return kWindow; }

}  // namespace ingot::core::onnx
