// SPDX-License-Identifier: Apache-2.0
// Quantization of blocks: torchao's operators of affine quantization and of fp8, and those of groups of PT2E;
// and the products of such operands.
#include <algorithm>

#include "importers/aten/converters/building.h"
#include "importers/aten/converters/converters.h"
#include "importers/aten/converters/promotion.h"
#include "ops/quantize.h"
#include "ops/reshape.h"
#include "ops/select.h"
#include "ops/view.h"

namespace ingot::core::aten {
namespace {

constexpr double kLargestE4M3 = 448, kLargestE5M2 = 57344;

// A shape in which each dim that several blocks divide is two dims, and that of their parameters.
struct Blocks {
  Shape elements, parameters;
};

// `block`: the extent of a block along each dim.
Blocks blocks_of(Call& call, const Shape& shape, const std::vector<Dim>& block) {
  call.require(block.size() == shape.size(), "a block must have an extent for each dim");
  Blocks blocks;
  for (size_t i = 0; i < shape.size(); ++i) {
    const auto size = shape[i].constant(), extent = block[i].constant();
    if (block[i] == shape[i] || block[i] == Dim(1)) {
      blocks.elements.push_back(shape[i]);
      blocks.parameters.push_back(block[i] == shape[i] ? Dim(1) : shape[i]);
      continue;
    }
    call.require(size && extent && *extent > 0 && *size % *extent == 0, "blocks must divide the dims");
    blocks.elements.insert(blocks.elements.end(), {Dim(*size / *extent), block[i]});
    blocks.parameters.insert(blocks.parameters.end(), {Dim(*size / *extent), Dim(1)});
  }
  return blocks;
}

// The program says that elements have four bits: later passes see their range.
core::Value* limited(Call& call, core::Value* x) {
  if (!is_integer(x->type.dtype) || !call.has("quant_min") || !call.has("quant_max")) return x;
  const double low = call.number("quant_min"), high = call.number("quant_max");
  const bool has_four_bits = (low >= -8 && high <= 7) || (low >= 0 && high <= 15);
  return has_four_bits ? emit(call, ops::clamp, {x}, ops::Clamp{low, high}) : x;
}

core::Value* dequantized(Call& call, core::Value* x, const Blocks& blocks, core::Value* scale,
                         core::Value* zero_point) {
  const Shape shape = x->type.shape;
  core::Graph& graph = call.graph();
  if (zero_point != nullptr) {
    if (is_floating(zero_point->type.dtype)) call.refuse("zero points that are not integers");
    zero_point = converted(graph, reshaped(call, zero_point, blocks.parameters), DType::kI32);
  }
  scale = converted(graph, reshaped(call, scale, blocks.parameters), DType::kF32);
  x = emit(call, ops::dequantize, {reshaped(call, x, blocks.elements), scale, zero_point});
  return reshaped(call, x, shape);
}

void dequantize_affine(Call& call) {
  core::Value* x = call.tensor("input");
  if (!is_integer(x->type.dtype)) call.refuse("elements that are not integers");
  const Blocks blocks = blocks_of(call, x->type.shape, call.dims("block_size"));
  core::Value* result =
      dequantized(call, limited(call, x), blocks, call.tensor("scale"), call.optional_tensor("zero_point"));
  call.give(converted(call.graph(), result, call.dtype("output_dtype").value_or(DType::kF32)));
}

void dequantize_groups(Call& call) {
  core::Value *x = call.tensor("input"), *scales = call.tensor("scales");
  call.require(x->type.rank() == 2 && is_integer(x->type.dtype), "only matrices of integers have groups");
  const int64_t size = call.has("group_size") ? call.integer("group_size") : 128;
  const auto depth = x->type.shape[1].constant();
  const bool is_one = depth && size > *depth && scales->type.shape.back() == Dim(1);
  const Blocks blocks = blocks_of(call, x->type.shape, {1, is_one ? *depth : size});
  core::Value* result =
      dequantized(call, limited(call, x), blocks, scales, call.optional_tensor("zero_points"));
  call.give(converted(call.graph(), result, call.dtype("output_dtype").value_or(DType::kF32)));
}

// Scales of fp8 have the dims of x: an element for each block, or one for all.
Blocks blocks_of_scales(Call& call, const Shape& shape, const Shape& scales) {
  if (std::ranges::all_of(scales, [](const Dim& dim) { return dim == Dim(1); }))
    return {shape, Shape(shape.size(), 1)};
  call.require(scales.size() == shape.size(), "scales must have the dims of the tensor");
  std::vector<Dim> block;
  for (size_t i = 0; i < shape.size(); ++i) {
    const auto size = shape[i].constant(), count = scales[i].constant();
    const bool divides = size && count && *count > 0 && *size % *count == 0;
    block.push_back(scales[i] == shape[i] ? Dim(1)
                    : scales[i] == Dim(1) ? shape[i]
                                          : Dim(divides ? *size / *count : 0));
  }
  return blocks_of(call, shape, block);
}

struct ScaledFloats {
  core::Value *x, *scale;  // f32, in the shape of blocks
  Shape shape;             // of the tensor
};
ScaledFloats scaled_floats(Call& call) {
  core::Value *x = call.tensor("tensor"), *scale = call.tensor("scale");
  const Blocks blocks = blocks_of_scales(call, x->type.shape, scale->type.shape);
  return {converted(call.graph(), reshaped(call, x, blocks.elements), DType::kF32),
          converted(call.graph(), reshaped(call, scale, blocks.parameters), DType::kF32), x->type.shape};
}

void dequantize_float8(Call& call) {
  const ScaledFloats given = scaled_floats(call);
  core::Value* result = reshaped(call, emit(call, ops::multiply, {given.x, given.scale}), given.shape);
  call.give(converted(call.graph(), result, call.dtype("output_dtype").value_or(DType::kF32)));
}

void quantize_float8(Call& call) {
  const DType dtype = call.dtype("float8_dtype").value_or(DType::kE4M3);
  if (dtype != DType::kE4M3 && dtype != DType::kE5M2) call.refuse("a dtype that is not float8");
  const double largest = dtype == DType::kE4M3 ? kLargestE4M3 : kLargestE5M2;
  const ScaledFloats given = scaled_floats(call);
  core::Value* scaled = emit(call, ops::divide, {given.x, given.scale});
  core::Value* inside = emit(call, ops::clamp, {scaled}, ops::Clamp{-largest, largest});
  call.give(converted(call.graph(), reshaped(call, inside, given.shape), dtype));
}

core::Value* transposed_matrix(Call& call, core::Value* x) {
  if (x->producer != nullptr && x->producer->op == &ops::transpose) return x->producer->operands[0];
  return transposed(call, x, {1, 0});
}

// One scale for a matrix, or one for each of its rows (of the result's columns).
core::Value* factor(Call& call, std::string_view name, const Dim& extent, bool of_rows) {
  core::Value* scale = converted(call.graph(), call.tensor(name), DType::kF32);
  const Shape& shape = scale->type.shape;
  if (std::ranges::all_of(shape, [](const Dim& dim) { return dim == Dim(1); }))
    return reshaped(call, scale, {});
  const bool fits = shape.size() == 2 && shape == (of_rows ? Shape{extent, 1} : Shape{1, extent});
  if (!fits) call.refuse("scales of blocks");
  return scale;
}

// Products in f32 of what the narrow elements are: exact conversions, sums as in linear layers.
void scaled_mm(Call& call) {
  core::Value *a = call.tensor("self"), *b = call.tensor("mat2");
  if (call.has("scale_result")) call.refuse("a scale of the result");
  call.require(a->type.rank() == 2 && b->type.rank() == 2, "operands that are not matrices");
  core::Graph& graph = call.graph();
  core::Value* weight = converted(graph, transposed_matrix(call, b), DType::kF32);
  core::Value* product = emit(call, ops::linear, {converted(graph, a, DType::kF32), weight, nullptr});
  core::Value* scales = emit(
      call, ops::multiply,
      {factor(call, "scale_a", a->type.shape[0], true), factor(call, "scale_b", b->type.shape[1], false)});
  core::Value* result = emit(call, ops::multiply, {product, scales});
  if (core::Value* bias = call.optional_tensor("bias"))
    result = emit(call, ops::add, {result, converted(graph, bias, DType::kF32)});
  call.give(converted(graph, result, call.dtype("out_dtype").value_or(a->type.dtype)));
}

constexpr Converter kAffineConverters[] = {
    {"aten._scaled_mm.default", scaled_mm},
    {"quantized_decomposed.dequantize_per_channel_group.default", dequantize_groups},
    {"torchao.dequantize_affine.default", dequantize_affine},
    {"torchao.dequantize_affine_float8_non_decomposed.default", dequantize_float8},
    {"torchao.quantize_affine_float8_non_decomposed.default", quantize_float8},
};

}  // namespace

std::span<const Converter> affine_converters() { return kAffineConverters; }

}  // namespace ingot::core::aten
