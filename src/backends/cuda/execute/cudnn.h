// SPDX-License-Identifier: Apache-2.0
// NVIDIA's library of convolutions, opened when an engine first needs it: the functions of its backend
// (graph) interface.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cuda/execute/driver.h"

namespace ingot::core::cuda {

// As cudnn_graph.h declares them. cudnnBackendDescriptorType_t:
enum class DescriptorKind : int {
  kPointwise = 0,
  kConvolution = 1,
  kEngine = 2,
  kEngineConfig = 3,
  kEngineHeuristics = 4,
  kExecutionPlan = 5,
  kConvolutionForward = 10,
  kPointwiseOperation = 13,
  kOperationGraph = 15,
  kVariantPack = 16,
  kTensor = 17
};
// cudnnBackendAttributeName_t
enum class CudnnAttribute : int {
  kPointwiseMode = 0,
  kPointwisePrecision = 1,
  kPointwiseNanPropagation = 2,
  kReluUpperClip = 4,
  kConvolutionPrecision = 100,
  kConvolutionMode = 101,
  kConvolutionDilations = 102,
  kConvolutionStrides = 103,
  kConvolutionPostPaddings = 104,
  kConvolutionPrePaddings = 105,
  kConvolutionDims = 106,
  kHeuristicsMode = 200,
  kHeuristicsGraph = 201,
  kHeuristicsResults = 202,
  kConfigEngine = 300,
  kPlanHandle = 400,
  kPlanConfig = 401,
  kPlanWorkspace = 402,
  kForwardAlpha = 700,
  kForwardBeta = 701,
  kForwardConvolution = 702,
  kForwardWeight = 703,
  kForwardX = 704,
  kForwardResult = 705,
  kOperationPointwise = 750,
  kOperationX = 751,
  kOperationB = 752,
  kOperationResult = 753,
  kGraphHandle = 800,
  kGraphOperations = 801,
  kTensorAlignment = 900,
  kTensorDtype = 901,
  kTensorDims = 902,
  kTensorStrides = 903,
  kTensorId = 906,
  kTensorIsVirtual = 907,
  kPackIds = 1000,
  kPackPointers = 1001,
  kPackWorkspace = 1003,
  kEngineNumericalNotes = 1303
};
// cudnnBackendAttributeType_t
enum class AttributeType : int {
  kHandle = 0,
  kDtype = 1,
  kBool = 2,
  kInt64 = 3,
  kFloat = 4,
  kDouble = 5,
  kPointer = 6,
  kConvolutionMode = 7,
  kHeuristicsMode = 8,
  kNanPropagation = 10,
  kNumericalNote = 11,
  kPointwiseMode = 14,
  kDescriptor = 15
};
enum class CudnnDtype : int { kF32 = 0, kF16 = 2, kBF16 = 9 };
enum class PointwiseMode : int {
  kAdd = 0,
  kRelu = 100,
  kTanh = 101,
  kSigmoid = 102,
  kGelu = 104,
  kSwish = 106
};
enum class HeuristicsMode : int { kFallback = 2, kA = 3 };
enum class NumericalNote : int {
  kTensorCore = 0,
  kDownConverts = 1,  // operands, to a shorter dtype
  kReducesShort = 2,  // sums in a shorter dtype than f32
  kFourier = 3,
  kNondeterministic = 4,
  kWinograd = 5,  // and the sizes of its tiles
  kWinograd4x4 = 6,
  kWinograd6x6 = 7,
  kWinograd13x13 = 8
};
constexpr int kCrossCorrelation = 1, kPropagatesNan = 1;

struct Cudnn {
  int (*create)(Handle*);
  int (*set_stream)(Handle, Handle stream);
  const char* (*status_text)(int);
  void (*last_error)(char*, size_t);
  int (*create_descriptor)(DescriptorKind, Handle*);
  int (*destroy_descriptor)(Handle);
  int (*set)(Handle, CudnnAttribute, AttributeType, int64_t count, const void*);
  int (*get)(Handle, CudnnAttribute, AttributeType, int64_t most, int64_t* count, void*);
  int (*finalize)(Handle);
  int (*execute)(Handle, Handle plan, Handle variant_pack);
  int64_t version;  // 92801 is 9.28.1
};

// Null: `reason` says what is missing, or too old.
const Cudnn* find_cudnn(const char** reason);

// DeviceError INGOT-D405 with the library's own words if `result` is not success.
void check(const Cudnn& library, int result, const char* call);

}  // namespace ingot::core::cuda
