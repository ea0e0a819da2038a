// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/execute/convolution_graph.h"

#include <algorithm>
#include <bit>
#include <span>

#include <fmt/core.h>
#include <fmt/ranges.h>

namespace ingot::core::cuda {
namespace {

CudnnDtype cudnn_dtype(DType dtype) {
  return dtype == DType::kF16    ? CudnnDtype::kF16
         : dtype == DType::kBF16 ? CudnnDtype::kBF16
                                 : CudnnDtype::kF32;
}

// cuDNN knows images and volumes; lines are images of height 1.
size_t window_dims(const ConvolutionShape& shape) {
  const bool is_flat = shape.input[0] == 1 && shape.output[0] == 1 && shape.window[0] == 1 &&
                       shape.stride[0] == 1 && shape.padding[0] == 0;
  return is_flat ? kMostWindowDims - 1 : kMostWindowDims;
}

std::span<const int64_t> last(const ConvolutionShape::Window& window, size_t dims) {
  return std::span(window).last(dims);
}

// In elements: dim 1 is innermost.
std::vector<int64_t> channels_last_strides(const std::vector<int64_t>& dims) {
  std::vector<int64_t> strides(dims.size(), 1);
  int64_t stride = dims[1];
  for (size_t dim = dims.size() - 1; dim >= 2; --dim) {
    strides[dim] = stride;
    stride *= dims[dim];
  }
  strides[0] = stride;
  return strides;
}

PointwiseMode mode_of(LibraryActivation activation) {
  switch (activation) {
    case LibraryActivation::kSilu:
      return PointwiseMode::kSwish;
    case LibraryActivation::kSigmoid:
      return PointwiseMode::kSigmoid;
    case LibraryActivation::kTanh:
      return PointwiseMode::kTanh;
    case LibraryActivation::kGelu:
      return PointwiseMode::kGelu;
    default:
      return PointwiseMode::kRelu;
  }
}

}  // namespace

ConvolutionShape::ConvolutionShape(const Launch& launch, const int64_t* sizes, int64_t aligned)
    : dtype(static_cast<DType>(launch.constants[kLibraryDtype])),
      has_bias(launch.constants[kLibraryBias] >= 0),
      adds(launch.constants[kLibraryAdded] >= 0),
      activation(static_cast<LibraryActivation>(launch.constants[kConvolutionActivation])),
      bound(std::bit_cast<double>(launch.constants[kConvolutionBound])),
      images(sizes[kImages]),
      groups(launch.constants[kConvolutionGroups]),
      channels(launch.constants[kConvolutionChannels]),
      results(launch.constants[kConvolutionResults]),
      alignment(aligned) {
  const auto copy = [](const int64_t* from, Window& to) { std::copy_n(from, kMostWindowDims, to.begin()); };
  copy(sizes + kInput, input);
  copy(sizes + kOutput, output);
  copy(launch.constants.data() + kConvolutionWindow, window);
  copy(launch.constants.data() + kConvolutionStride, stride);
  copy(launch.constants.data() + kConvolutionPadding, padding);
  copy(launch.constants.data() + kConvolutionDilation, dilation);
}

ConvolutionGraph::ConvolutionGraph(const Cudnn& library, Handle handle, const ConvolutionShape& shape)
    : library_(library), shape_(shape), window_dims_(window_dims(shape)) {
  const bool has_activation = shape.activation != LibraryActivation::kNone;
  left_ = size_t{shape.has_bias} + size_t{shape.adds} + size_t{has_activation};
  const CudnnDescriptor* sum = &convolve();
  if (shape.adds) {
    const auto& added = tensor("added", TensorId::kAdded, dims(shape.images, shape.results, shape.output));
    sum = &pointwise("sum with the tensor added", PointwiseMode::kAdd, *sum, &added);
  }
  if (shape.has_bias) {
    const auto& bias = tensor("bias", TensorId::kBias, dims(1, shape.results, {1, 1, 1}));
    sum = &pointwise("sum with the bias", PointwiseMode::kAdd, *sum, &bias);
  }
  if (has_activation) pointwise("activation", mode_of(shape.activation), *sum, nullptr);
  CudnnDescriptor& graph = make(DescriptorKind::kOperationGraph, "the graph of operations");
  graph.set(CudnnAttribute::kGraphHandle, AttributeType::kHandle, handle)
      .set(CudnnAttribute::kGraphOperations, AttributeType::kDescriptor,
           static_cast<int64_t>(operations_.size()), operations_.data())
      .finalize();
}

CudnnDescriptor& ConvolutionGraph::make(DescriptorKind kind, std::string name) {
  return descriptors_.emplace_back(library_, kind, std::move(name));
}

ConvolutionGraph::Dims ConvolutionGraph::dims(int64_t outermost, int64_t channels,
                                              const ConvolutionShape::Window& inner) const {
  Dims dims = {outermost, channels};
  const auto own = last(inner, window_dims_);
  dims.insert(dims.end(), own.begin(), own.end());
  return dims;
}

// Values between operations are f32, and have no address; before a bounded relu they are rounded, since cuDNN
// has no kernel otherwise.
const CudnnDescriptor& ConvolutionGraph::tensor(const char* name, TensorId id, const Dims& dims) {
  const bool is_virtual = id >= TensorId::kFirstVirtual,
             is_rounded = !is_virtual || shape_.activation == LibraryActivation::kBoundedRelu;
  CudnnDescriptor& tensor =
      make(DescriptorKind::kTensor, fmt::format("the tensor {} [{}]", name, fmt::join(dims, ", ")));
  tensor
      .set(CudnnAttribute::kTensorDtype, AttributeType::kDtype,
           is_rounded ? cudnn_dtype(shape_.dtype) : CudnnDtype::kF32)
      .set(CudnnAttribute::kTensorDims, dims)
      .set(CudnnAttribute::kTensorStrides, channels_last_strides(dims))
      .set(CudnnAttribute::kTensorId, AttributeType::kInt64, static_cast<int64_t>(id))
      .set(CudnnAttribute::kTensorAlignment, AttributeType::kInt64,
           is_virtual ? kConvolutionAlignment : shape_.alignment);
  if (is_virtual) tensor.set(CudnnAttribute::kTensorIsVirtual, AttributeType::kBool, true);
  return tensor.finalize();
}

// The result of an operation that `operations_left` others follow.
const CudnnDescriptor& ConvolutionGraph::next(size_t operations_left) {
  const Dims own = dims(shape_.images, shape_.results, shape_.output);
  if (operations_left == 0) return tensor("result", TensorId::kResult, own);
  const auto id = static_cast<int64_t>(TensorId::kFirstVirtual) + virtuals_++;
  return tensor("between operations", static_cast<TensorId>(id), own);
}

const CudnnDescriptor& ConvolutionGraph::convolve() {
  const auto& x = tensor("x", TensorId::kX, dims(shape_.images, shape_.channels, shape_.input));
  const auto& weight = tensor("weight", TensorId::kWeight,
                              dims(shape_.results, shape_.channels / shape_.groups, shape_.window));
  const auto& result = next(left_);
  CudnnDescriptor& convolution = make(DescriptorKind::kConvolution, "the convolution");
  convolution.set(CudnnAttribute::kConvolutionPrecision, AttributeType::kDtype, CudnnDtype::kF32)
      .set(CudnnAttribute::kConvolutionMode, AttributeType::kConvolutionMode, kCrossCorrelation)
      .set(CudnnAttribute::kConvolutionDims, AttributeType::kInt64, static_cast<int64_t>(window_dims_))
      .set(CudnnAttribute::kConvolutionDilations, last(shape_.dilation, window_dims_))
      .set(CudnnAttribute::kConvolutionStrides, last(shape_.stride, window_dims_))
      .set(CudnnAttribute::kConvolutionPrePaddings, last(shape_.padding, window_dims_))
      .set(CudnnAttribute::kConvolutionPostPaddings, last(shape_.padding, window_dims_))
      .finalize();
  CudnnDescriptor& forward = make(DescriptorKind::kConvolutionForward, "the convolution forward");
  forward.set(CudnnAttribute::kForwardConvolution, convolution)
      .set(CudnnAttribute::kForwardX, x)
      .set(CudnnAttribute::kForwardWeight, weight)
      .set(CudnnAttribute::kForwardResult, result)
      .set(CudnnAttribute::kForwardAlpha, AttributeType::kFloat, 1.0f)
      .set(CudnnAttribute::kForwardBeta, AttributeType::kFloat, 0.0f)
      .finalize();
  operations_.push_back(forward.handle());
  return result;
}

const CudnnDescriptor& ConvolutionGraph::pointwise(const char* name, PointwiseMode mode,
                                                   const CudnnDescriptor& x, const CudnnDescriptor* b) {
  const auto& result = next(--left_);
  CudnnDescriptor& function = make(DescriptorKind::kPointwise, fmt::format("the function of the {}", name));
  function.set(CudnnAttribute::kPointwiseMode, AttributeType::kPointwiseMode, mode)
      .set(CudnnAttribute::kPointwisePrecision, AttributeType::kDtype, CudnnDtype::kF32);
  if (mode == PointwiseMode::kRelu)
    function.set_if_known(CudnnAttribute::kPointwiseNanPropagation, AttributeType::kNanPropagation,
                          kPropagatesNan);
  if (shape_.activation == LibraryActivation::kBoundedRelu && mode == PointwiseMode::kRelu)
    function.set(CudnnAttribute::kReluUpperClip, AttributeType::kDouble, shape_.bound);
  function.finalize();
  CudnnDescriptor& operation = make(DescriptorKind::kPointwiseOperation, fmt::format("the {}", name));
  operation.set(CudnnAttribute::kOperationPointwise, function)
      .set(CudnnAttribute::kOperationX, x)
      .set(CudnnAttribute::kOperationResult, result);
  if (b != nullptr) operation.set(CudnnAttribute::kOperationB, *b);
  operation.finalize();
  operations_.push_back(operation.handle());
  return result;
}

}  // namespace ingot::core::cuda
