// SPDX-License-Identifier: Apache-2.0
// A convolution by cuDNN (images/library_call.h).
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "backends/cuda/execute/convolution_graph.h"
#include "backends/cuda/execute/prepared_call.h"

namespace ingot::core::cuda {

// One shape of a convolution, with a plan of the library for it.
class LibraryConvolution final : public PreparedCall {
 public:
  LibraryConvolution(const Cudnn& library, LibraryHandle& handle, const ConvolutionShape& shape,
                     int64_t choice, int64_t workspace_bytes);
  void enqueue(const Arguments& arguments, Handle stream) const override;

 private:
  std::vector<CudnnDescriptor> ranked() const;
  void append(HeuristicsMode mode, std::vector<CudnnDescriptor>& configs) const;
  bool is_aligned() const;
  bool is_acceptable(const CudnnDescriptor& config) const;
  void choose(size_t choice, int64_t workspace_bytes);
  std::optional<CudnnDescriptor> make_plan(const CudnnDescriptor& config, int64_t workspace_bytes) const;

  const Cudnn& library_;
  LibraryHandle& handle_;
  const ConvolutionShape shape_;
  const ConvolutionGraph graph_;
  std::unique_ptr<const CudnnDescriptor> config_, plan_;
};

}  // namespace ingot::core::cuda
