// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/execute/library_call_rules.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace ingot::core::cuda {
namespace {

bool is_library_dtype(int64_t dtype) {
  return std::ranges::any_of(std::array{DType::kF16, DType::kBF16, DType::kF32},
                             [&](DType known) { return dtype == static_cast<int64_t>(known); });
}

bool is_size(int64_t number) { return number > 0 && number <= INT32_MAX; }

bool is_positive(const Dim& dim) {
  const auto size = dim.constant();
  return size && is_size(*size);
}

// What launches of all libraries have in common. Operands are the first two arguments, or named.
bool is_valid_call(const Launch& launch, int64_t first, int64_t buffers) {
  const auto& constants = launch.constants;
  const auto is_argument = [&](int64_t at) { return at >= first && at < buffers; };
  const int64_t bias = constants[kLibraryBias], added = constants[kLibraryAdded],
                result = constants[kLibraryResult];
  const bool has_arguments = is_argument(result) && (bias == -1 || is_argument(bias)) &&
                             (added == -1 || is_argument(added)) && bias != result && added != result;
  const auto workspace = launch.sizes[kScratchBytes].constant();
  return constants[kGroup] == 1 && constants[kCluster] == 1 && launch.symbols.empty() && has_arguments &&
         constants[kLibraryVersion] >= 0 && constants[kLibraryChoice] >= 0 &&
         constants[kLibraryChoice] < kLibraryChoices && (constants[kLibraryForm] & ~kLibraryForms) == 0 &&
         is_library_dtype(constants[kLibraryDtype]) && workspace && *workspace >= 0 &&
         *workspace <= kMostLibraryWorkspace;
}

bool is_valid_product(const Launch& launch, int64_t buffers) {
  return launch.sizes.size() == kLibrarySizes && is_valid_call(launch, 2, buffers) &&
         is_positive(launch.sizes[kLibraryColumns]) && is_positive(launch.sizes[kLibraryDepth]);
}

bool has_valid_window(const std::vector<int64_t>& constants) {
  for (size_t dim = 0; dim < kMostWindowDims; ++dim) {
    const int64_t padding = constants[kConvolutionPadding + dim];
    if (!is_size(constants[kConvolutionWindow + dim]) || !is_size(constants[kConvolutionStride + dim]) ||
        !is_size(constants[kConvolutionDilation + dim]) || padding < 0 || padding > INT32_MAX)
      return false;
  }
  return true;
}

bool is_valid_convolution(const Launch& launch, int64_t buffers) {
  if (launch.sizes.size() != kConvolutionSizes || !is_valid_call(launch, 0, buffers)) return false;
  const auto& constants = launch.constants;
  const int64_t x = constants[kConvolutionX], weight = constants[kConvolutionWeight],
                result = constants[kLibraryResult], groups = constants[kConvolutionGroups],
                activation = constants[kConvolutionActivation];
  const auto is_operand = [&](int64_t at) { return at >= 0 && at < buffers && at != result; };
  const auto is_divided = [&](int64_t channels) { return is_size(channels) && channels % groups == 0; };
  return is_operand(x) && is_operand(weight) && constants[kLibraryForm] == 0 &&
         constants[kLibraryDtype] != static_cast<int64_t>(DType::kF32) && activation >= 0 &&
         activation < kLibraryActivations && is_size(groups) && is_divided(constants[kConvolutionChannels]) &&
         is_divided(constants[kConvolutionResults]) && has_valid_window(constants);
}

// Whether arguments have the elements that a call takes them to have.
class ElementCheck {
 public:
  ElementCheck(const Launch& launch, std::span<const TensorType* const> arguments)
      : dtype_(static_cast<DType>(launch.constants[kLibraryDtype])), arguments_(arguments) {}

  bool has(int64_t argument, const Dim& elements) const {
    if (argument == -1) return true;
    const TensorType& type = *arguments_[static_cast<size_t>(argument)];
    return type.dtype == dtype_ && type.layout.is_permutation() && product(type.shape) == elements;
  }

 private:
  const DType dtype_;
  const std::span<const TensorType* const> arguments_;
};

bool fits_product(const Launch& launch, const ElementCheck& check) {
  const auto& constants = launch.constants;
  const Dim &batch = launch.sizes[kLibraryBatch], &rows = launch.sizes[kLibraryRows],
            &columns = launch.sizes[kLibraryColumns], &depth = launch.sizes[kLibraryDepth];
  const int64_t form = constants[kLibraryForm];
  const Dim one = 1;
  return check.has(0, ((form & kSharesA) != 0 ? one : batch) * rows * depth) &&
         check.has(1, ((form & kSharesB) != 0 ? one : batch) * columns * depth) &&
         check.has(constants[kLibraryBias], columns) &&
         check.has(constants[kLibraryAdded], batch * rows * columns) &&
         check.has(constants[kLibraryResult], batch * rows * columns);
}

bool fits_convolution(const Launch& launch, const ElementCheck& check) {
  const auto& constants = launch.constants;
  const Dim channels = constants[kConvolutionChannels], results = constants[kConvolutionResults];
  Dim x = launch.sizes[kImages] * channels, result = launch.sizes[kImages] * results;
  Dim weight = results * Dim(constants[kConvolutionChannels] / constants[kConvolutionGroups]);
  for (size_t dim = 0; dim < kMostWindowDims; ++dim) {
    x = x * launch.sizes[kInput + dim];
    result = result * launch.sizes[kOutput + dim];
    weight = weight * Dim(constants[kConvolutionWindow + dim]);
  }
  return check.has(constants[kConvolutionX], x) && check.has(constants[kConvolutionWeight], weight) &&
         check.has(constants[kLibraryBias], results) && check.has(constants[kLibraryAdded], result) &&
         check.has(constants[kLibraryResult], result);
}

}  // namespace

bool is_valid_library_call(const Launch& launch, size_t buffers) {
  const Library* library = called_library(launch);
  if (library == nullptr || launch.sizes.size() < kLaunchSizes) return false;
  const auto count = static_cast<int64_t>(buffers);
  return library == &kCudnn ? is_valid_convolution(launch, count) : is_valid_product(launch, count);
}

bool fits_library_call(const Launch& launch, std::span<const TensorType* const> arguments) {
  const ElementCheck check(launch, arguments);
  return called_library(launch) == &kCudnn ? fits_convolution(launch, check) : fits_product(launch, check);
}

}  // namespace ingot::core::cuda
