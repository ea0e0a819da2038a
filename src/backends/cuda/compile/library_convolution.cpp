// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/library_convolution.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "backends/cuda/compile/library_epilogue.h"
#include "backends/cuda/compile/library_kernel.h"
#include "ops/convolution.h"
#include "ops/ops.h"

namespace ingot::core::cuda {
namespace {

constexpr size_t kFirstWindowDim = 2;  // the first dim of a window, behind two others
constexpr size_t kBiasOperand = 2;     // an operand

Layout channels_last_of(const TensorType& type) { return Layout::permutation(channels_last(type.rank())); }

bool has_constant_sizes(const Node& node) {
  const Shape& weight = node.operand_type(1).shape;
  return node.operand_type(0).shape[1].constant() &&
         std::ranges::all_of(weight, [](const Dim& dim) { return dim.constant().value_or(0) > 0; });
}

bool has_library_layouts(const Node& node) {
  const auto is_channels_last = [](const TensorType& type) { return type.layout == channels_last_of(type); };
  return is_channels_last(node.operand_type(0)) && is_channels_last(node.operand_type(1)) &&
         is_channels_last(node.results[0]->type);
}

// The last dims of `shape` from its third, behind ones.
std::vector<Dim> padded_window(const Shape& shape) {
  std::vector<Dim> window(kMostWindowDims - (shape.size() - kFirstWindowDim), Dim(1));
  window.insert(window.end(), shape.begin() + kFirstWindowDim, shape.end());
  return window;
}

void append_window(const std::vector<int64_t>& own, int64_t missing, std::vector<int64_t>& constants) {
  constants.insert(constants.end(), kMostWindowDims - own.size(), missing);
  constants.insert(constants.end(), own.begin(), own.end());
}

class ConvolutionLowering {
 public:
  explicit ConvolutionLowering(const LibraryConvolutionSite& site)
      : site_(site), node_(site.node), attributes_(node_.attributes<ops::Convolution>()) {}

  // Nothing if an operand is not an argument of the step.
  std::optional<Launch> launch(const LibraryEpilogue& after, int64_t version) const {
    const int64_t own_bias =
        node_.has_operand(kBiasOperand) ? argument(node_.operands[kBiasOperand]) : kNoBuffer;
    if (node_.has_operand(kBiasOperand) && (own_bias == kNoBuffer || after.bias != kNoBuffer))
      return std::nullopt;
    const int64_t bias = node_.has_operand(kBiasOperand) ? own_bias : buffer(after.bias);
    const int64_t x = argument(node_.operands[0]), weight = argument(node_.operands[1]);
    const DType dtype = node_.operand_type(0).dtype;
    if (x == kNoBuffer || weight == kNoBuffer) return std::nullopt;
    Launch launch{.sizes = sizes(),
                  .constants = {0, 1, 1, version, 0, 0, static_cast<int64_t>(dtype), bias,
                                buffer(after.added), buffer(after.result), x, weight,
                                static_cast<int64_t>(after.activation), std::bit_cast<int64_t>(after.bound),
                                attributes_.groups, *node_.operand_type(0).shape[1].constant(),
                                *node_.operand_type(1).shape[0].constant()}};
    append_windows(launch.constants);
    return launch;
  }

 private:
  int64_t argument(const Value* value) const {
    const auto found = std::ranges::find(site_.arguments, value);
    return found == site_.arguments.end() ? kNoBuffer : found - site_.arguments.begin();
  }
  int64_t buffer(int64_t own) const {
    return own == kNoBuffer ? kNoBuffer : argument(site_.buffers[static_cast<size_t>(own)]);
  }

  std::vector<Dim> sizes() const {
    const Shape &x = node_.operand_type(0).shape, &result = node_.results[0]->type.shape;
    std::vector<Dim> sizes = {Dim(1), Dim(0), Dim(kLibraryWorkspace), x[0]};
    for (const Shape* shape : {&x, &result}) {
      const std::vector<Dim> window = padded_window(*shape);
      sizes.insert(sizes.end(), window.begin(), window.end());
    }
    return sizes;
  }

  void append_windows(std::vector<int64_t>& constants) const {
    for (const Dim& dim : padded_window(node_.operand_type(1).shape)) constants.push_back(*dim.constant());
    append_window(attributes_.stride, 1, constants);
    append_window(attributes_.padding, 0, constants);
    append_window(attributes_.dilation, 1, constants);
  }

  const LibraryConvolutionSite& site_;
  const Node& node_;
  const ops::Convolution attributes_;
};

}  // namespace

bool suits_library(const Node& node) {
  if (node.op != &ops::convolution || node.results.empty()) return false;
  const TensorType &x = node.operand_type(0), &weight = node.operand_type(1);
  if (!is_half(x.dtype)) return false;
  const bool is_one_dtype =
      weight.dtype == x.dtype && node.results[0]->type.dtype == x.dtype &&
      (!node.has_operand(kBiasOperand) || node.operand_type(kBiasOperand).dtype == x.dtype);
  return is_one_dtype && x.rank() > kFirstWindowDim && x.rank() <= kFirstWindowDim + kMostWindowDims &&
         has_constant_sizes(node);
}

LayoutRequest library_layouts(const Node& node) {
  const Layout layout = channels_last_of(node.operand_type(0));
  return {{layout, layout}, {layout}};
}

std::vector<LoweredKernel> library_convolutions(const LibraryConvolutionSite& site, int64_t version,
                                                int64_t choices) {
  const Node& node = site.node;
  if (!suits_library(node) || !has_library_layouts(node)) return {};
  constexpr size_t kChannels = 1;
  const Layout layout = channels_last_of(node.results[0]->type);
  const auto after = read_library_epilogue(node, kChannels, layout, site.epilogue);
  if (!after) return {};
  const auto launch = ConvolutionLowering(site).launch(*after, version);
  if (!launch) return {};
  std::vector<LoweredKernel> kernels;
  for (int64_t choice = 0; choice < std::min(choices, kLibraryChoices); ++choice) {
    Launch own = *launch;
    own.constants[kLibraryChoice] = choice;
    kernels.push_back(library_kernel(kCudnn, node, site.architecture, std::move(own)));
    kernels.back().keeps_special_values = false;
  }
  return kernels;
}

}  // namespace ingot::core::cuda
