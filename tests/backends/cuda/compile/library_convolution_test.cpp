// SPDX-License-Identifier: Apache-2.0
// Which convolutions are offered to cuDNN, and how. The templates' tests run them where there are GPU and
// library.
#include "backends/cuda/compile/library_convolution.h"

#include <bit>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "backends/cuda/execute/execute.h"
#include "backends/cuda/images/library_call.h"
#include "backends/steps/members.h"
#include "ir/text.h"
#include "ops/ops.h"

namespace ingot::core::cuda {
namespace {

constexpr int64_t kCudnnVersion = 92801;
constexpr const char* kImagesLast = "{0, 2, 3, 1}";

struct Offered {
  std::vector<LoweredKernel> kernels;
  bool are_valid = true;  // for the executor, with the step's types
};

// The convolution and what follows it, as one step whose arguments are the inputs in order, then the result.
Offered offer(const std::string& inputs, const std::string& body, const char* layout = kImagesLast) {
  Graph graph = parse_graph(fmt::format("graph g({}) {{\n{}\n return %y\n}}", inputs, body), ops::find_op);
  Members members;
  std::vector<const Value*> arguments;
  const auto lay_out = [&](Value& value) {
    if (value.type.rank() > 2) value.type.layout = parse_layout(layout, value.type.rank());
  };
  for (Value* input : graph.inputs()) {
    lay_out(*input);
    arguments.push_back(input);
  }
  for (const auto& node : graph.nodes()) {
    members.nodes.push_back(node.get());
    lay_out(*node->results[0]);
  }
  members.outputs.push_back(graph.outputs[0]);
  arguments.push_back(graph.outputs[0]);
  const Node& convolution = *find_contraction(members);
  const RegionKernel epilogue = epilogue_of(members, convolution);
  Offered offered{library_convolutions({.node = convolution,
                                        .epilogue = epilogue.kernel,
                                        .buffers = epilogue.buffers,
                                        .arguments = arguments,
                                        .architecture = "sm_90a"},
                                       kCudnnVersion, 3)};
  std::vector<const TensorType*> types;
  for (const Value* value : arguments) types.push_back(&value->type);
  for (const LoweredKernel& kernel : offered.kernels)
    offered.are_valid = offered.are_valid && executor().is_valid(kernel.launch, types.size()) &&
                        executor().fits(kernel.launch, kernel.compile(), types);
  return offered;
}

std::string convolution(const char* result = "%y", const char* type = "f16[N,24,9,7]",
                        const char* operands = "%x, %w, %b") {
  return fmt::format(" {} = convolution({}) {{stride=[1, 1], padding=[1, 1], dilation=[1, 1]}} : {}", result,
                     operands, type);
}
constexpr const char* kInputs = "%x: f16[N,16,9,7], %w: f16[24,16,3,3], %b: f16[24]";
constexpr const char* kInputsWithAdded =
    "%x: f16[N,16,9,7], %w: f16[24,16,3,3], %b: f16[24], %r: f16[N,24,9,7]";

TEST(CudaLibraryConvolutions, HaveAsManyTacticsAsWereAsked) {
  const Offered offered = offer(kInputs, convolution());
  ASSERT_EQ(offered.kernels.size(), 3U);
  EXPECT_TRUE(offered.are_valid);
  for (size_t i = 0; i < offered.kernels.size(); ++i)
    EXPECT_EQ(offered.kernels[i].tactic, fmt::format("cuDNN, choice {}", i));
  const auto& constants = offered.kernels[0].launch.constants;
  EXPECT_EQ(constants[kConvolutionX], 0);
  EXPECT_EQ(constants[kConvolutionWeight], 1);
  EXPECT_EQ(constants[kLibraryBias], 2);
  EXPECT_EQ(constants[kLibraryResult], 3);
  EXPECT_EQ(constants[kConvolutionWindow], 1) << "images have windows of two dims";
  EXPECT_EQ(constants[kConvolutionWindow + 2], 3);
  EXPECT_NE(offered.kernels[0].key, offered.kernels[1].key);
  const Image image = offered.kernels[1].compile();
  EXPECT_EQ(image.kernel, "convolution: cuDNN, choice 1");
  EXPECT_EQ(image.target, "cuda:sm_90a+cudnn");
  EXPECT_EQ(called_library(image), &kCudnn);
  EXPECT_EQ(architecture_of(image), "sm_90a");
}

TEST(CudaLibraryConvolutions, TakeASumAndAnActivation) {
  const auto activation = [](const std::string& body) {
    const Offered offered = offer(kInputsWithAdded, body);
    if (offered.kernels.empty() || !offered.are_valid) return int64_t{-1};
    EXPECT_EQ(offered.kernels[0].launch.constants[kLibraryAdded], 3);
    return offered.kernels[0].launch.constants[kConvolutionActivation];
  };
  const std::string sum = convolution("%c") + "\n %s = add(%c, %r) : f16[N,24,9,7]\n %y = ";
  const auto is = [](LibraryActivation own) { return static_cast<int64_t>(own); };
  EXPECT_EQ(activation(convolution("%c") + "\n %y = add(%r, %c) : f16[N,24,9,7]"),
            is(LibraryActivation::kNone));
  EXPECT_EQ(activation(sum + "relu(%s) : f16[N,24,9,7]"), is(LibraryActivation::kRelu));
  EXPECT_EQ(activation(sum + "silu(%s) : f16[N,24,9,7]"), is(LibraryActivation::kSilu));
  EXPECT_EQ(activation(sum + "sigmoid(%s) : f16[N,24,9,7]"), is(LibraryActivation::kSigmoid));
  EXPECT_EQ(activation(sum + "tanh(%s) : f16[N,24,9,7]"), is(LibraryActivation::kTanh));
  EXPECT_EQ(activation(sum + "gelu(%s) {approximate=false} : f16[N,24,9,7]"), is(LibraryActivation::kGelu));
  const Offered bounded =
      offer(kInputs, convolution("%c") + "\n %y = clamp(%c) {low=0, high=6} : f16[N,24,9,7]");
  ASSERT_FALSE(bounded.kernels.empty());
  EXPECT_EQ(bounded.kernels[0].launch.constants[kConvolutionActivation], is(LibraryActivation::kBoundedRelu));
  EXPECT_EQ(std::bit_cast<double>(bounded.kernels[0].launch.constants[kConvolutionBound]), 6);
}

TEST(CudaLibraryConvolutions, TakeGroupsAndWindowsOfOneToThreeDims) {
  const Offered groups =
      offer("%x: bf16[2,16,9,7], %w: bf16[24,4,3,3]",
            " %y = convolution(%x, %w) {stride=[2, 1], padding=[1, 1], dilation=[1, 1], groups=4} : "
            "bf16[2,24,5,7]");
  ASSERT_FALSE(groups.kernels.empty());
  EXPECT_TRUE(groups.are_valid);
  EXPECT_EQ(groups.kernels[0].launch.constants[kConvolutionGroups], 4);
  const Offered volumes =
      offer("%x: f16[N,16,5,9,7], %w: f16[24,16,3,3,3]",
            " %y = convolution(%x, %w) {stride=[1, 1, 2], padding=[1, 1, 1], dilation=[1, 1, 1]} : "
            "f16[N,24,5,9,4]",
            "{0, 2, 3, 4, 1}");
  ASSERT_FALSE(volumes.kernels.empty());
  EXPECT_TRUE(volumes.are_valid);
  EXPECT_EQ(volumes.kernels[0].launch.constants[kConvolutionStride + 2], 2);
  const Offered lines =
      offer("%x: f16[N,16,S], %w: f16[24,16,3]",
            " %y = convolution(%x, %w) {stride=[1], padding=[1], dilation=[1]} : f16[N,24,S]", "{0, 2, 1}");
  ASSERT_FALSE(lines.kernels.empty());
  EXPECT_TRUE(lines.are_valid);
}

TEST(CudaLibraryConvolutions, AreNoneWhereTheLibraryCannot) {
  const auto count = [](const std::string& inputs, const std::string& body,
                        const char* layout = kImagesLast) {
    return offer(inputs, body, layout).kernels.size();
  };
  EXPECT_EQ(count(kInputs, convolution(), ""), 0U) << "channels first";
  const std::string relu = convolution("%c") + "\n %y = relu(%c) : f16[N,24,9,7]";
  EXPECT_FALSE(offer(kInputs, relu).kernels.empty());
  EXPECT_FALSE(offer(kInputs, relu).kernels[0].keeps_special_values) << "NaN may become 0";
  EXPECT_EQ(count("%x: f32[N,16,9,7], %w: f32[24,16,3,3], %b: f32[24]", convolution("%y", "f32[N,24,9,7]")),
            0U)
      << "f32";
  EXPECT_EQ(count("%x: f64[N,16,9,7], %w: f64[24,16,3,3], %b: f64[24]", convolution("%y", "f64[N,24,9,7]")),
            0U);
  EXPECT_EQ(count(kInputsWithAdded,
                  convolution("%c") + "\n %a = relu(%c) : f16[N,24,9,7]\n %y = add(%a, %r) : f16[N,24,9,7]"),
            0U)
      << "an activation in front of the sum";
  EXPECT_EQ(count(kInputsWithAdded, convolution("%c") + "\n %y = multiply(%c, %r) : f16[N,24,9,7]"), 0U);
  EXPECT_EQ(count(kInputs, convolution("%c") + "\n %y = clamp(%c) {low=-1, high=6} : f16[N,24,9,7]"), 0U);
  EXPECT_EQ(
      count(kInputsWithAdded,
            convolution("%c") + "\n %s = add(%c, %r) : f16[N,24,9,7]\n %y = add(%s, %r) : f16[N,24,9,7]"),
      0U)
      << "two tensors are added";
}

}  // namespace
}  // namespace ingot::core::cuda
