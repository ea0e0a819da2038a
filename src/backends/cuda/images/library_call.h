// SPDX-License-Identifier: Apache-2.0
// Steps that call a library instead of a kernel: how their launches and images say so, for both halves of the
// backend. Such a launch has no threads (kBlock is 0), and its scratch bytes are those of the whole call.
//
// The image of a library call is a description for people; its target ends with the library's suffix, so that
// a runtime without library calls, or without the library, refuses the engine when it is loaded.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "backends/cuda/images/library.h"
#include "backends/cuda/kernel_abi.h"
#include "engine/program.h"

namespace ingot::core::cuda {

// Null: the image is a kernel.
inline const Library* called_library(const Image& image) {
  const auto found = std::ranges::find_if(
      kLibraries, [&](const Library* library) { return image.target.ends_with(library->suffix); });
  return found == kLibraries.end() ? nullptr : *found;
}
inline bool calls_library(const Launch& launch) {
  return launch.constants.size() > kLaunchConstants && launch.constants[kBlock] == 0;
}
// "sm_90a" of an image of either kind.
inline std::string_view architecture_of(const Image& image) {
  std::string_view device = device_of(image);
  if (const Library* library = called_library(image)) device.remove_suffix(library->suffix.size());
  return device;
}

// What launches of all libraries have in common.
enum LibraryConstant : uint8_t {
  kLibraryVersion = kLaunchConstants,  // that was asked when the engine was built
  kLibraryChoice,  // which of the library's own ranking; of another version the first is taken
  kLibraryForm,    // of LibraryForm
  kLibraryDtype,   // of operands and result
  kLibraryBias,    // the argument that is the bias, or -1
  kLibraryAdded,   // likewise: a tensor as large as the result
  kLibraryResult,
  kLibraryConstants
};
enum LibraryForm : uint8_t {
  kSharesA = 1,       // the whole batch multiplies the same a
  kSharesB = 2,       // ... or the same b
  kDepthInner = 4,    // b is [batch, columns, depth] in memory
  kRoundsToTf32 = 8,  // of f32
  kLibraryForms = 16 - 1
};
constexpr int64_t kLibraryChoices = 8;
constexpr int64_t kLibraryWorkspace = int64_t{32} << 20, kMostLibraryWorkspace = int64_t{1} << 30;

// A product by cuBLASLt has these constants alone. Of arguments 0 and 1,
//   result[batch, rows, columns] = a[batch, rows, depth] b[batch, depth, columns] + bias[columns] + added,
// where operands are contiguous and all of one dtype.
enum LibrarySize : uint8_t {
  kLibraryBatch = kLaunchSizes,
  kLibraryRows,
  kLibraryColumns,
  kLibraryDepth,
  kLibrarySizes
};

// A convolution by cuDNN:
//   result[images, *output, channels] = activation(x * weight + bias[channels] + added)
// where x is [images, *input, channels], weight [result's channels, *window, x's channels / groups], all of
// one dtype. Windows have three dims; those of fewer begin with ones.
constexpr size_t kMostWindowDims = 3;
enum ConvolutionSize : uint8_t {
  kImages = kLaunchSizes,
  kInput,
  kOutput = kInput + kMostWindowDims,
  kConvolutionSizes = kOutput + kMostWindowDims
};
enum ConvolutionConstant : uint8_t {
  kConvolutionX = kLibraryConstants,  // the argument
  kConvolutionWeight,
  kConvolutionActivation,  // of LibraryActivation
  kConvolutionBound,       // of kBoundedRelu: the bits of a double
  kConvolutionGroups,
  kConvolutionChannels,  // of x
  kConvolutionResults,   // channels of the result
  kConvolutionWindow,
  kConvolutionStride = kConvolutionWindow + kMostWindowDims,
  kConvolutionPadding = kConvolutionStride + kMostWindowDims,
  kConvolutionDilation = kConvolutionPadding + kMostWindowDims,
  kConvolutionConstants = kConvolutionDilation + kMostWindowDims
};
enum class LibraryActivation : uint8_t { kNone, kRelu, kBoundedRelu, kSilu, kSigmoid, kTanh, kGelu };
constexpr int64_t kLibraryActivations = 7;

// Null: no launch that calls a library has so many constants.
inline const Library* called_library(const Launch& launch) {
  if (!calls_library(launch)) return nullptr;
  return launch.constants.size() == kLibraryConstants       ? &kCublasLt
         : launch.constants.size() == kConvolutionConstants ? &kCudnn
                                                            : nullptr;
}

}  // namespace ingot::core::cuda
