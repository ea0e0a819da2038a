// SPDX-License-Identifier: Apache-2.0
#include "bench/kernels/cases.h"

#include <fmt/core.h>

#include "backends/cpu/compile/templates/attention.h"
#include "backends/cpu/compile/templates/convolution.h"
#include "backends/cpu/compile/templates/linear.h"
#include "backends/cpu/compile/templates/target.h"
#include "backends/steps/members.h"
#include "loops/functions.h"
#include "ops/attention.h"
#include "ops/convolution.h"

namespace ingot::bench {

using core::Dim;
using core::DType;
using core::TensorType;

namespace {

// gelu(x) + y, y an operand of the result's size.
core::loops::Kernel gelu_and_residual(const TensorType& result) {
  namespace loops = core::loops;
  loops::Kernel kernel = core::plain_epilogue(result);
  kernel.buffers.push_back({"residual", result, loops::Access::kRead});
  loops::Stage& stage = kernel.stages[0];
  auto number = [](double value) { return loops::constant(DType::kF32, value); };
  auto times = [](loops::Expr a, loops::Expr b) { return loops::binary(loops::Binary::kMultiply, a, b); };
  auto plus = [](loops::Expr a, loops::Expr b) { return loops::binary(loops::Binary::kAdd, a, b); };
  loops::Expr half = times(stage.value, number(0.5));
  loops::Expr error_function =
      loops::call(loops::functions::erf, times(stage.value, number(0.70710678118654752)));
  loops::Expr gelu = times(half, plus(error_function, number(1)));
  stage.value = plus(gelu, loops::load(2, DType::kF32, stage.store->index));
  return kernel;
}

DType weight_dtype(DType dtype) { return dtype == DType::kU8 ? DType::kI8 : dtype; }
DType sum_dtype(DType dtype) { return dtype == DType::kU8 ? DType::kI32 : DType::kF32; }

KernelCase linear_case(int64_t rows, int64_t columns, int64_t depth, const core::Target& target, DType dtype,
                       bool fused = false) {
  Dim m = Dim::symbol("M");
  std::vector<TensorType> operands{{dtype, {m, depth}, {}}, {weight_dtype(dtype), {columns, depth}, {}}};
  if (dtype != DType::kU8) operands.push_back({DType::kF32, {columns}, {}});
  operands[1].layout = *core::cpu::linear_layouts(operands, core::cpu::features_of(target)).operands[1];
  TensorType result{sum_dtype(dtype), {m, columns}, {}};
  core::loops::Kernel epilogue = fused ? gelu_and_residual(result) : core::plain_epilogue(result);
  KernelCase c{fmt::format("linear {}x{}x{}{}", rows, depth, columns, fused ? " gelu residual" : ""),
               core::cpu::plan_linear(operands, epilogue, {{"M", {}}}, target, {}),
               operands,
               {{"M", rows}},
               2.0 * rows * columns * depth};
  c.buffers.push_back(result);
  if (fused) c.buffers.push_back(result);
  if (rows <= 4) c.streamed_bytes = columns * depth * bit_width(operands[1].dtype) / 8;
  return c;
}

struct ConvolutionShape {
  int64_t channels, size, columns, window, stride, padding;
};

// The distinct convolutions of ResNet-50 at 224 x 224, the first one first.
constexpr ConvolutionShape kResNet50[] = {
    {3, 224, 64, 7, 2, 3},     {64, 56, 64, 1, 1, 0},    {64, 56, 64, 3, 1, 1},    {64, 56, 256, 1, 1, 0},
    {256, 56, 64, 1, 1, 0},    {256, 56, 128, 1, 1, 0},  {128, 56, 128, 3, 2, 1},  {128, 28, 512, 1, 1, 0},
    {256, 56, 512, 1, 2, 0},   {512, 28, 128, 1, 1, 0},  {128, 28, 128, 3, 1, 1},  {512, 28, 256, 1, 1, 0},
    {256, 28, 256, 3, 2, 1},   {256, 14, 1024, 1, 1, 0}, {512, 28, 1024, 1, 2, 0}, {1024, 14, 256, 1, 1, 0},
    {256, 14, 256, 3, 1, 1},   {1024, 14, 512, 1, 1, 0}, {512, 14, 512, 3, 2, 1},  {512, 7, 2048, 1, 1, 0},
    {1024, 14, 2048, 1, 2, 0}, {2048, 7, 512, 1, 1, 0},  {512, 7, 512, 3, 1, 1}};

KernelCase convolution_case(const ConvolutionShape& shape, const core::Target& target, DType dtype) {
  core::ops::Convolution attributes{{shape.stride, shape.stride}, {shape.padding, shape.padding}, {1, 1}, 1};
  int64_t size = (shape.size + 2 * shape.padding - shape.window) / shape.stride + 1;
  std::vector<TensorType> operands{
      {dtype, {1, shape.channels, shape.size, shape.size}, {}},
      {weight_dtype(dtype), {shape.columns, shape.channels, shape.window, shape.window}, {}}};
  if (dtype != DType::kU8) operands.push_back({DType::kF32, {shape.columns}, {}});
  core::LayoutRequest request =
      core::cpu::convolution_layouts(operands, attributes, core::cpu::features_of(target));
  for (size_t i = 0; i < 2; ++i) operands[i].layout = *request.operands[i];
  TensorType result{sum_dtype(dtype), {1, shape.columns, size, size}, *request.results[0]};
  KernelCase c{fmt::format("convolution {}x{} {}>{} /{}", shape.window, shape.size, shape.channels,
                           shape.columns, shape.stride),
               core::cpu::plan_convolution(operands, result, attributes, 0, core::plain_epilogue(result), {},
                                           target, {}),
               operands,
               {},
               2.0 * shape.columns * size * size * shape.channels * shape.window * shape.window};
  c.buffers.push_back(result);
  return c;
}

constexpr int64_t kFour = 4;  // channels that narrow products take at once

struct AttentionShape {
  const char* name;
  int64_t heads, key_heads, queries, keys, width;
  bool causal;
};

constexpr AttentionShape kAttention[] = {{"BERT", 12, 12, 128, 128, 64, false},
                                         {"ViT", 12, 12, 197, 197, 64, false},
                                         {"GPT-2 prefill", 12, 12, 512, 512, 64, true},
                                         {"GPT-2 decode", 12, 12, 1, 1024, 64, false},
                                         {"Llama decode", 32, 8, 1, 1024, 64, false}};

KernelCase attention_case(const AttentionShape& shape, const core::Target& target) {
  auto type = [&](int64_t heads, int64_t rows) {
    return TensorType{
        DType::kF32, {1, heads, rows, shape.width}, core::Layout::permutation(std::array{0, 2, 1, 3})};
  };
  std::vector<TensorType> operands{type(shape.heads, shape.queries), type(shape.key_heads, shape.keys),
                                   type(shape.key_heads, shape.keys)};
  core::ops::Attention attributes{0, shape.causal, shape.heads != shape.key_heads};
  TensorType result = type(shape.heads, shape.queries);
  KernelCase c{
      fmt::format("attention {}", shape.name),
      core::cpu::plan_attention(operands, result, attributes, core::plain_epilogue(result), {}, target),
      operands,
      {},
      4.0 * shape.heads * shape.queries * shape.keys * shape.width * (shape.causal ? 0.5 : 1)};
  c.buffers.push_back(result);
  if (shape.queries == 1) c.streamed_bytes = 2 * shape.key_heads * shape.keys * shape.width * 4;
  return c;
}

}  // namespace

std::vector<KernelCase> kernel_cases(const core::Target& target, DType dtype) {
  std::vector<KernelCase> cases;
  for (auto [rows, columns, depth] : {std::array<int64_t, 3>{128, 3072, 768},
                                      {128, 768, 3072},
                                      {128, 768, 768},
                                      {1024, 3072, 768},
                                      {1024, 768, 3072},
                                      {197, 3072, 768},
                                      {197, 768, 3072},
                                      {16, 3072, 768},
                                      {8, 3072, 768},
                                      {4, 3072, 768},
                                      {1, 3072, 768},
                                      {1, 768, 3072},
                                      {1, 50257, 768}}) {
    cases.push_back(linear_case(rows, columns, depth, target, dtype));
  }
  if (dtype != DType::kU8) {
    cases.push_back(linear_case(128, 3072, 768, target, dtype, true));
    cases.push_back(linear_case(128, 768, 3072, target, dtype, true));
  }
  for (const AttentionShape& shape : kAttention) {
    if (dtype == DType::kF32) cases.push_back(attention_case(shape, target));
  }
  for (ConvolutionShape shape : kResNet50) {
    if (dtype != DType::kF32) shape.channels = (shape.channels + kFour - 1) / kFour * kFour;
    cases.push_back(convolution_case(shape, target, dtype));
  }
  return cases;
}

}  // namespace ingot::bench
