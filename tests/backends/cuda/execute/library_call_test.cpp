// SPDX-License-Identifier: Apache-2.0
// What an engine file may say of a library call: it stays within its arguments, whatever the sizes.
#include <gtest/gtest.h>

#include <functional>

#include "backends/cuda/execute/execute.h"
#include "backends/cuda/images/library_call.h"

namespace ingot::core::cuda {
namespace {

const Dim kRows = Dim::symbol("S");

// x[2, S, 64] w[48, 64] + bias[48] + added[2, S, 48]
struct Call {
  Launch launch{.image = 0,
                .symbols = {},
                .sizes = {1, 0, kLibraryWorkspace, 1, kRows* Dim(2), 48, 64},
                .constants = {0, 1, 1, 130100, 1, kDepthInner, static_cast<int64_t>(DType::kF16), 2, 3, 4}};
  Image image{.kernel = "linear: cuBLASLt, choice 1",
              .target = "cuda:sm_90a+cublaslt",
              .code = std::vector<std::byte>(8)};
  std::vector<TensorType> types = {{DType::kF16, {2, kRows, 64}, {}},
                                   {DType::kF16, {48, 64}, {}},
                                   {DType::kF16, {48}, {}},
                                   {DType::kF16, {2, kRows, 48}, {}},
                                   {DType::kF16, {2, kRows, 48}, {}}};

  bool is_accepted() const {
    std::vector<const TensorType*> arguments;
    for (const TensorType& type : types) arguments.push_back(&type);
    return executor().is_valid(launch, types.size()) && executor().fits(launch, image, arguments);
  }
};

bool is_accepted_with(const std::function<void(Call&)>& change) {
  Call call;
  change(call);
  return call.is_accepted();
}

TEST(CudaLibraryCall, TakesWhatTheCompilerWrites) { EXPECT_TRUE(Call().is_accepted()); }

TEST(CudaLibraryCall, RejectsEveryConstantOutOfRange) {
  for (const auto& [constant, value] :
       std::initializer_list<std::pair<size_t, int64_t>>{{kBlock, 1},
                                                         {kGroup, 2},
                                                         {kCluster, 2},
                                                         {kLibraryVersion, -1},
                                                         {kLibraryChoice, -1},
                                                         {kLibraryChoice, kLibraryChoices},
                                                         {kLibraryForm, kLibraryForms + 1},
                                                         {kLibraryForm, -1},
                                                         {kLibraryDtype, static_cast<int64_t>(DType::kF64)},
                                                         {kLibraryDtype, 1000},
                                                         {kLibraryBias, 5},
                                                         {kLibraryBias, -2},
                                                         {kLibraryBias, 1},
                                                         {kLibraryBias, 4},
                                                         {kLibraryAdded, 4},
                                                         {kLibraryAdded, 0},
                                                         {kLibraryResult, 5},
                                                         {kLibraryResult, 1},
                                                         {kLibraryResult, -1}})
    EXPECT_FALSE(is_accepted_with([&](Call& call) { call.launch.constants[constant] = value; }))
        << constant << " " << value;
  EXPECT_FALSE(is_accepted_with([](Call& call) { call.launch.constants.pop_back(); }));
  EXPECT_FALSE(is_accepted_with([](Call& call) { call.launch.constants.push_back(0); }));
}

TEST(CudaLibraryCall, RejectsSizesThatLeaveItsArguments) {
  for (const auto& [size, value] :
       std::initializer_list<std::pair<size_t, Dim>>{{kLibraryBatch, 2},
                                                     {kLibraryRows, kRows * Dim(3)},
                                                     {kLibraryRows, 1 << 20},
                                                     {kLibraryColumns, 56},
                                                     {kLibraryColumns, kRows},
                                                     {kLibraryColumns, -48},
                                                     {kLibraryDepth, 72},
                                                     {kLibraryDepth, 0},
                                                     {kScratchBytes, -1},
                                                     {kScratchBytes, kMostLibraryWorkspace + 1},
                                                     {kScratchBytes, kRows}})
    EXPECT_FALSE(is_accepted_with([&](Call& call) { call.launch.sizes[size] = value; })) << size;
  EXPECT_FALSE(is_accepted_with([](Call& call) { call.launch.sizes.pop_back(); }));
}

TEST(CudaLibraryCall, RejectsArgumentsOfOtherTypes) {
  for (size_t i = 0; i < Call().types.size(); ++i) {
    EXPECT_FALSE(is_accepted_with([&](Call& call) { call.types[i].dtype = DType::kF32; })) << i;
    EXPECT_FALSE(is_accepted_with([&](Call& call) { call.types[i].shape[0] = 1; })) << i;
  }
}

// x[N, 16, 9, S] of 4 groups, weight [24, 4, 3, 3], bias, added and result [N, 24, 9, S]
struct Convolution : Call {
  Convolution() {
    const Dim images = Dim::symbol("N");
    launch.sizes = {1, 0, kLibraryWorkspace, images, 1, 9, kRows, 1, 9, kRows};
    launch.constants = {0, 1,  1,  92801, 1, 0, static_cast<int64_t>(DType::kF16),
                        2, 3,  4,  0,     1, 1, 0,
                        4, 16, 24, 1,     3, 3, 1,
                        1, 1,  0,  1,     1, 1, 1,
                        1};
    image = {.kernel = "convolution: cuDNN, choice 1",
             .target = "cuda:sm_90a+cudnn",
             .code = std::vector<std::byte>(8)};
    types = {{DType::kF16, {images, 16, 9, kRows}, {}},
             {DType::kF16, {24, 4, 3, 3}, {}},
             {DType::kF16, {24}, {}},
             {DType::kF16, {images, 24, 9, kRows}, {}},
             {DType::kF16, {images, 24, 9, kRows}, {}}};
  }
};

bool is_convolution_accepted_with(const std::function<void(Call&)>& change) {
  Convolution call;
  change(call);
  return call.is_accepted();
}

TEST(CudaLibraryConvolution, TakesWhatTheCompilerWrites) {
  EXPECT_TRUE(Convolution().is_accepted());
  EXPECT_EQ(Convolution().launch.constants.size(), static_cast<size_t>(kConvolutionConstants));
  EXPECT_EQ(Convolution().launch.sizes.size(), static_cast<size_t>(kConvolutionSizes));
}

TEST(CudaLibraryConvolution, RejectsEveryConstantOutOfRange) {
  for (const auto& [constant, value] :
       std::initializer_list<std::pair<size_t, int64_t>>{{kBlock, 1},
                                                         {kLibraryVersion, -1},
                                                         {kLibraryChoice, kLibraryChoices},
                                                         {kLibraryForm, kDepthInner},
                                                         {kLibraryDtype, static_cast<int64_t>(DType::kF64)},
                                                         {kLibraryBias, 5},
                                                         {kLibraryAdded, 4},
                                                         {kLibraryResult, 5},
                                                         {kLibraryResult, 0},
                                                         {kLibraryResult, -1},
                                                         {kConvolutionX, -1},
                                                         {kConvolutionX, 4},
                                                         {kConvolutionWeight, 5},
                                                         {kConvolutionActivation, kLibraryActivations},
                                                         {kConvolutionActivation, -1},
                                                         {kConvolutionGroups, 0},
                                                         {kConvolutionGroups, 3},
                                                         {kConvolutionGroups, -4},
                                                         {kConvolutionChannels, 20},
                                                         {kConvolutionResults, 0},
                                                         {kConvolutionWindow + 1, 0},
                                                         {kConvolutionWindow + 2, 5},
                                                         {kConvolutionStride, 0},
                                                         {kConvolutionPadding + 1, -1},
                                                         {kConvolutionDilation + 2, 0}})
    EXPECT_FALSE(is_convolution_accepted_with([&](Call& call) { call.launch.constants[constant] = value; }))
        << constant << " " << value;
  EXPECT_FALSE(is_convolution_accepted_with([](Call& call) { call.launch.constants.pop_back(); }));
}

TEST(CudaLibraryConvolution, RejectsSizesThatLeaveItsArguments) {
  for (const auto& [size, value] :
       std::initializer_list<std::pair<size_t, Dim>>{{kImages, 7},
                                                     {kInput, 2},
                                                     {kInput + 1, 10},
                                                     {kInput + 2, kRows + Dim(1)},
                                                     {kOutput + 1, 8},
                                                     {kOutput + 2, 1 << 20},
                                                     {kScratchBytes, kMostLibraryWorkspace + 1}})
    EXPECT_FALSE(is_convolution_accepted_with([&](Call& call) { call.launch.sizes[size] = value; })) << size;
  EXPECT_FALSE(is_convolution_accepted_with([](Call& call) { call.launch.sizes.pop_back(); }));
  for (size_t i = 0; i < Convolution().types.size(); ++i) {
    EXPECT_FALSE(is_convolution_accepted_with([&](Call& call) { call.types[i].dtype = DType::kF32; })) << i;
    EXPECT_FALSE(is_convolution_accepted_with([&](Call& call) { call.types[i].shape[0] = 1; })) << i;
  }
}

TEST(CudaLibraryConvolution, NeedsTheImageOfItsLibrary) {
  EXPECT_FALSE(is_convolution_accepted_with([](Call& call) { call.image.target = "cuda:sm_90a+cublaslt"; }));
  EXPECT_FALSE(is_convolution_accepted_with([](Call& call) { call.image.target = "cuda:sm_90a"; }));
  EXPECT_FALSE(is_accepted_with([](Call& call) { call.image.target = "cuda:sm_90a+cudnn"; }));
}

TEST(CudaLibraryCall, NeedsAnImageThatSaysSo) {
  EXPECT_FALSE(is_accepted_with([](Call& call) { call.image.target = "cuda:sm_90a"; }));
  EXPECT_FALSE(is_accepted_with([](Call& call) { call.launch.constants = {128, 128, 1}; }));
  EXPECT_EQ(architecture_of(Call().image), "sm_90a");
}

}  // namespace
}  // namespace ingot::core::cuda
