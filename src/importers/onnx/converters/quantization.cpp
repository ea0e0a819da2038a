// SPDX-License-Identifier: Apache-2.0
// Numbers as integers with a scale and a zero point.
#include <array>

#include "importers/onnx/converters/converters.h"
#include "importers/onnx/float8.h"
#include "importers/onnx/tensors.h"
#include "ops/quantize.h"
#include "ops/reduce.h"
#include "ops/select.h"

namespace ingot::core::onnx {
namespace {

struct Limits {
  double low, high;
};

Limits limits_of(DType dtype) {
  switch (dtype) {
    case DType::kU4:
      return {0, 15};
    case DType::kI4:
      return {-8, 7};
    case DType::kU8:
      return {0, 255};
    case DType::kI8:
      return {-128, 127};
    case DType::kU16:
      return {0, 65535};
    case DType::kI16:
      return {-32768, 32767};
    default:
      refuse("integers of this type");
  }
}

// A scale or zero point in the shape that broadcasts to x: for all of it, along an axis, or for blocks of
// one.
Value* spread(Call& call, Value* parameter, const Shape& x) {
  Graph& graph = call.graph();
  const Shape given = parameter->type.shape;
  if (given.empty()) return parameter;
  if (given == Shape{1}) return reshaped(graph, parameter, {});
  const size_t axis = call.axis(call.attribute_integer("axis", 1), x.size());
  const int64_t block = call.attribute_integer("block_size", 0);
  if (block == 0) {
    if (given.size() != 1) refuse_node("a scale must have at most one dim");
    Shape line(x.size(), 1);
    line[axis] = given[0];
    return reshaped(graph, parameter, std::move(line));
  }
  if (given.size() != x.size() || block < 1)
    refuse_node("the scale of blocks must have the dims of the input");
  Shape repeated = given, joined = given;
  repeated.insert(repeated.begin() + static_cast<ptrdiff_t>(axis) + 1, Dim(block));
  joined[axis] = given[axis] * Dim(block);
  Value* blocks = expanded(graph, unsqueezed(graph, parameter, axis + 1), std::move(repeated));
  return sliced(graph, reshaped(graph, blocks, std::move(joined)), axis, 0, x[axis]);
}

// round(x / scale) + zero point, within the limits of the dtype.
Value* quantized(Graph& graph, const Term& x, const Term& scale, Value* zero_point, DType dtype) {
  Term result = (x / scale).apply(ops::round);
  if (zero_point != nullptr) result = result + Term(graph, converted(graph, zero_point, DType::kF32));
  const Limits limits = limits_of(dtype);
  Value* limited = graph.call(ops::clamp, {result}, ops::Clamp{limits.low, limits.high});
  return converted(graph, converted(graph, limited, DType::kI32), widened(dtype));
}

DType quantized_dtype(Call& call) {
  if (call.has(2)) return call.element_type(2);
  const int64_t given = call.attribute_integer("output_dtype", 0);
  const std::optional<DType> dtype = given == 0 ? DType::kU8 : dtype_of(given);
  if (!dtype) refuse("integers of type " + data_type_name(given));
  return *dtype;
}

void convert_quantize(Call& call) {
  Graph& graph = call.graph();
  Value* x = call.tensor(0);
  const Shape shape = x->type.shape;
  const Term scale(graph, converted(graph, spread(call, call.tensor(1), shape), DType::kF32));
  const Term wide(graph, converted(graph, x, DType::kF32));
  const DType dtype = quantized_dtype(call);
  if (is_floating(dtype)) return call.give(to_float8(call, wide / scale, dtype));  // zero points are 0
  Value* zero_point = call.has(2) ? spread(call, call.tensor(2), shape) : nullptr;
  call.give(quantized(graph, wide, scale, zero_point, dtype));
}

// Scales of blocks of one dim, as a matrix's weights have them, stay as they are: x gets a dim of blocks.
Value* dequantized_blocks(Call& call, Value* x, Value* scale, Value* zero_point) {
  Graph& graph = call.graph();
  const Shape shape = x->type.shape, given = scale->type.shape;
  const int64_t block = call.attribute_integer("block_size", 0);
  if (block < 1 || given.size() != shape.size()) return nullptr;
  const size_t axis = call.axis(call.attribute_integer("axis", 1), shape.size());
  const auto count = given[axis].constant();
  if (!count || shape[axis] != given[axis] * Dim(block)) return nullptr;
  Shape blocks = shape;
  blocks[axis] = *count;
  blocks.insert(blocks.begin() + static_cast<ptrdiff_t>(axis) + 1, Dim(block));
  const auto placed = [&](Value* value, DType dtype) {
    return value == nullptr ? nullptr : converted(graph, unsqueezed(graph, value, axis + 1), dtype);
  };
  Value* result = graph.call(ops::dequantize, {reshaped(graph, x, blocks), placed(scale, DType::kF32),
                                               placed(zero_point, DType::kI32)});
  return reshaped(graph, result, shape);
}

void convert_dequantize(Call& call) {
  Graph& graph = call.graph();
  Value *x = call.tensor(0), *scale = call.tensor(1);
  const DType dtype = scale->type.dtype;
  const Shape shape = x->type.shape;
  const auto wide_scale = [&] { return converted(graph, spread(call, scale, shape), DType::kF32); };
  if (is_floating(x->type.dtype) && bit_width(x->type.dtype) == 8) {
    const Term product = Term(graph, converted(graph, x, DType::kF32)) * Term(graph, wide_scale());
    return call.give(converted(graph, product, dtype));
  }
  if (!is_integer(x->type.dtype)) refuse("elements that are neither integers nor float8");
  Value* zero_point = call.has(2) ? call.tensor(2) : nullptr;
  if (Value* blocks = dequantized_blocks(call, x, scale, zero_point))
    return call.give(converted(graph, blocks, dtype));
  if (zero_point != nullptr) zero_point = converted(graph, spread(call, zero_point, shape), DType::kI32);
  std::vector<Value*> operands{x, wide_scale(), zero_point};
  call.give(converted(graph, graph.call(ops::dequantize, std::move(operands)), dtype));
}

// One scale and zero point for the range of x, widened to hold 0.
void convert_dynamic_quantize(Call& call) {
  Graph& graph = call.graph();
  const Term x(graph, call.tensor(0));
  const std::vector<int64_t> axes = all_axes(call.rank(0));
  const auto extreme = [&](const Op& reduce, const Op& choose) {
    Value* found = axes.empty() ? static_cast<Value*>(x) : graph.call(reduce, {x}, ops::Reduce{axes, false});
    return Term(graph, found).apply(choose, x.constant(0));
  };
  const Term low = extreme(ops::reduce_minimum, ops::minimum),
             high = extreme(ops::reduce_maximum, ops::maximum);
  const Term scale = (high - low) / 255;
  const Term offset = (0 - low / scale).apply(ops::round);
  Value* zero_point = graph.call(ops::clamp, {offset}, ops::Clamp{0, 255});
  call.give(0, quantized(graph, x, scale, zero_point, DType::kU8));
  call.give(1, scale);
  call.give(2, converted(graph, converted(graph, zero_point, DType::kI32), DType::kU8));
}

constexpr auto kQuantization = std::to_array<Converter>({
    {"DequantizeLinear", convert_dequantize, nullptr, 10},
    {"DynamicQuantizeLinear", convert_dynamic_quantize, nullptr, 11},
    {"QuantizeLinear", convert_quantize, nullptr, 10},
});

}  // namespace

std::span<const Converter> quantization_converters() { return kQuantization; }

}  // namespace ingot::core::onnx
