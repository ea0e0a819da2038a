// SPDX-License-Identifier: Apache-2.0
// Convolutions by cuDNN: tactics beside those of our own kernels, where it can do the whole step. They keep
// neither infinities nor NaN where they are, and its functions are less exact than ours.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "backends/backend.h"
#include "loops/kernel.h"

namespace ingot::core::cuda {

// Whether cuDNN computes it in the layouts that it asks for: of halves, with one, two or three dims of
// windows. `library_layouts` are these layouts.
bool suits_library(const Node& convolution);
LayoutRequest library_layouts(const Node& convolution);

// A step with a convolution: what is known when it is lowered.
struct LibraryConvolutionSite {
  const Node& node;
  const loops::Kernel& epilogue;
  std::span<const Value* const> buffers;    // of the epilogue: its first is the convolution's result
  std::span<const Value* const> arguments;  // of the step
  std::string_view architecture;
};

// The library's `choices` best predicted ways to compute the step; none if it cannot.
std::vector<LoweredKernel> library_convolutions(const LibraryConvolutionSite& site, int64_t version,
                                                int64_t choices);

}  // namespace ingot::core::cuda
