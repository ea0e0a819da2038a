// SPDX-License-Identifier: Apache-2.0
// torch's quantize and dequantize operators (quantized_decomposed), as PT2E quantization writes them.
#include "importers/aten/converters/building.h"
#include "importers/aten/converters/converters.h"
#include "importers/aten/converters/promotion.h"
#include "ops/quantize.h"
#include "ops/select.h"

namespace ingot::core::aten {
namespace {

// Scale and zero point in the form of the operators; no zero point is 0.
struct Parameters {
  core::Value *scale = nullptr, *inverse_scale = nullptr, *zero_point = nullptr;
};

// A tensor of one element, or one for each element of `axis`, in a shape that broadcasts to x.
core::Value* placed(Call& call, core::Value* value, const core::Value* x, std::optional<size_t> axis) {
  if (!axis) return reshaped(call, value, {});
  call.require(value->type.rank() == 1, "scales and zero points must have one dim");
  Shape shape(x->type.rank() - *axis, 1);
  shape[0] = value->type.shape[0];
  return reshaped(call, value, shape);
}

Parameters of_tensors(Call& call, const core::Value* x, const char* scale_name, const char* zero_point_name,
                      std::optional<size_t> axis) {
  core::Value *scale = call.tensor(scale_name), *zero_point = call.optional_tensor(zero_point_name);
  // With f64 scales torch rounds in f64, but reads a single one as a number.
  if (axis && scale->type.dtype != DType::kF32) call.refuse("scales of channels must be f32");
  scale = placed(call, converted(call.graph(), scale, DType::kF32), x, axis);
  if (zero_point != nullptr)
    zero_point = placed(call, converted(call.graph(), zero_point, DType::kI32), x, axis);
  return {scale, emit(call, ops::reciprocal, {scale}), zero_point};
}

Parameters of_numbers(Call& call) {
  const double scale = call.number("scale");
  const int64_t zero_point = call.integer("zero_point");
  core::Graph& graph = call.graph();
  return {scalar(graph, scale, DType::kF32), scalar(graph, 1 / scale, DType::kF32),
          zero_point == 0 ? nullptr : scalar(graph, static_cast<double>(zero_point), DType::kI32)};
}

Parameters of_tensor(Call& call, const core::Value* x) {
  if (!call.is_tensor("scale")) return of_numbers(call);
  return of_tensors(call, x, "scale", "zero_point", std::nullopt);
}
Parameters of_channels(Call& call, const core::Value* x) {
  return of_tensors(call, x, "scales", "zero_points", call.axis("axis", x->type.rank()));
}

core::Value* as_float(Call& call, core::Value* value) { return converted(call.graph(), value, DType::kF32); }

// As torch does for fp8 too: rounded to whole numbers, and converted.
core::Value* quantized_float(Call& call, core::Value* x, const Parameters& parameters, DType dtype) {
  core::Value* scaled = emit(call, ops::round, {emit(call, ops::multiply, {x, parameters.inverse_scale})});
  if (parameters.zero_point != nullptr)
    scaled = emit(call, ops::add, {scaled, as_float(call, parameters.zero_point)});
  const ops::Clamp limits{call.number("quant_min"), call.number("quant_max")};
  return converted(call.graph(), emit(call, ops::clamp, {scaled}, limits), dtype);
}
core::Value* dequantized_float(Call& call, core::Value* x, const Parameters& parameters) {
  core::Value* centered = as_float(call, x);
  if (parameters.zero_point != nullptr)
    centered = emit(call, ops::subtract, {centered, as_float(call, parameters.zero_point)});
  return emit(call, ops::multiply, {centered, parameters.scale});
}

using ParameterReader = Parameters (*)(Call& call, const core::Value* x);

template <ParameterReader kParameters>
void quantize(Call& call) {
  core::Value* x = converted(call.graph(), call.tensor("input"), DType::kF32);
  const Parameters parameters = kParameters(call, x);
  const DType dtype = call.dtype("dtype").value_or(DType::kU8);
  if (is_floating(dtype)) return call.give(quantized_float(call, x, parameters, dtype));
  if (bit_width(dtype) > 16) call.refuse("it quantizes to more than 16 bits");
  call.give(emit(call, ops::quantize, {x, parameters.inverse_scale, parameters.zero_point},
                 ops::Quantize{dtype, call.integer("quant_min"), call.integer("quant_max")}));
}

template <ParameterReader kParameters>
void dequantize(Call& call) {
  core::Value* x = call.tensor("input");
  const Parameters parameters = kParameters(call, x);
  core::Value* result = is_floating(x->type.dtype)
                            ? dequantized_float(call, x, parameters)
                            : emit(call, ops::dequantize, {x, parameters.scale, parameters.zero_point});
  const DType dtype = call.has("out_dtype") ? *call.dtype("out_dtype") : DType::kF32;
  call.give(converted(call.graph(), result, dtype));
}

constexpr Converter kQuantizedConverters[] = {
    {"quantized_decomposed.dequantize_per_channel.default", dequantize<of_channels>},
    {"quantized_decomposed.dequantize_per_tensor.default", dequantize<of_tensor>},
    {"quantized_decomposed.dequantize_per_tensor.tensor", dequantize<of_tensor>},
    {"quantized_decomposed.quantize_per_channel.default", quantize<of_channels>},
    {"quantized_decomposed.quantize_per_tensor.default", quantize<of_tensor>},
    {"quantized_decomposed.quantize_per_tensor.tensor", quantize<of_tensor>},
};

}  // namespace

std::span<const Converter> quantized_converters() { return kQuantizedConverters; }

}  // namespace ingot::core::aten
