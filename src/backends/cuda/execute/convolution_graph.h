// SPDX-License-Identifier: Apache-2.0
// A convolution with what follows it, as a graph of cuDNN's operations.
#pragma once

#include <array>
#include <deque>
#include <string>
#include <vector>

#include "backends/cuda/execute/cudnn_descriptor.h"
#include "backends/cuda/images/library_call.h"

namespace ingot::core::cuda {

constexpr int64_t kConvolutionAlignment = 16;  // bytes; cuDNN asks for no more, its tensor cores for no less

// The numbers of a valid launch with its sizes (images/library_call.h).
struct ConvolutionShape {
  using Window = std::array<int64_t, kMostWindowDims>;
  DType dtype;
  bool has_bias, adds;
  LibraryActivation activation;
  double bound;  // of kBoundedRelu
  int64_t images, groups, channels, results;
  Window input, output, window, stride, padding, dilation;
  int64_t alignment;  // bytes, of every address

  ConvolutionShape(const Launch& launch, const int64_t* sizes, int64_t aligned);
};

enum class TensorId : int64_t { kX = 1, kWeight, kBias, kAdded, kResult, kFirstVirtual };

//   x * weight -> + added -> + bias -> activation -> result
// In this order there are precompiled kernels; with the bias first, or without one, they are generated when a
// plan is made, which takes half a second (cuDNN 9.28).
class ConvolutionGraph {
 public:
  ConvolutionGraph(const Cudnn& library, Handle handle, const ConvolutionShape& shape);
  const CudnnDescriptor& graph() const { return descriptors_.back(); }

 private:
  using Dims = std::vector<int64_t>;
  CudnnDescriptor& make(DescriptorKind kind, std::string name);
  Dims dims(int64_t outermost, int64_t channels, const ConvolutionShape::Window& inner) const;
  const CudnnDescriptor& tensor(const char* name, TensorId id, const Dims& dims);
  const CudnnDescriptor& next(size_t operations_left);
  const CudnnDescriptor& convolve();
  const CudnnDescriptor& pointwise(const char* name, PointwiseMode mode, const CudnnDescriptor& x,
                                   const CudnnDescriptor* b);

  const Cudnn& library_;
  const ConvolutionShape& shape_;
  const size_t window_dims_;
  size_t left_ = 0;  // operations that follow
  int64_t virtuals_ = 0;
  std::deque<CudnnDescriptor> descriptors_;
  std::vector<Handle> operations_;
};

}  // namespace ingot::core::cuda
