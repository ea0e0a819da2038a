// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/templates/depthwise.h"

#include <fmt/ranges.h>

#include <numeric>

#include "backends/cpu/compile/llvm/elements.h"
#include "backends/cpu/compile/templates/depthwise_bytes.h"
#include "backends/cpu/compile/templates/depthwise_kernel.h"
#include "backends/cpu/compile/templates/target.h"
#include "ops/convolution.h"

namespace ingot::core::cpu {

namespace {

// Channels per group up to which several groups share a vector of channels.
constexpr int64_t kWidestGroup = 8;
// Enough accumulators to hide the latency of an FMA. Wide windows keep as many weights in registers as
// pixels, and must leave room for them.
constexpr int64_t kPixels = 8, kPixelsOfWideWindows = 6, kWideWindow = 8;
// Accumulated before one call of the epilogue.
constexpr int64_t kBlockChannels = 64;

class FloatKernel final : public DepthwiseKernel {
 public:
  using DepthwiseKernel::DepthwiseKernel;

 private:
  int lanes() const { return static_cast<int>(problem_.lanes); }

  void emit_lanes(llvm::Value* channel, llvm::Value* column) override {
    llvm::Value* mask = existing_lanes(channel);
    llvm::Type* vector = stored_type(builder_, DType::kF32, lanes());
    std::vector<llvm::Value*> sums(static_cast<size_t>(problem_.pixels),
                                   llvm::Constant::getNullValue(vector));
    sums = emit_carrying_loop(builder_, number(0), number(problem_.window_rows()), 1, sums,
                              [&](llvm::Value* row, std::span<llvm::Value* const> now) {
                                return add_window_row(channel, mask, row, now);
                              });
    for (int64_t pixel = 0; pixel < problem_.pixels; ++pixel) {
      llvm::Value* place = scaffold_.plus(column, pixel * problem_.block_channels);
      store_lanes(builder_, DType::kF32, sums[static_cast<size_t>(pixel)],
                  scaffold_.float_at(scaffold_.scratch(0), place));
    }
  }

  // Each element of the image row is loaded once, and multiplied with the weights of each pixel whose window
  // contains it. With groups of several channels, a lane needs all channels of its group: one vector per
  // channel of a group, each lane with that channel of its own group.
  std::vector<llvm::Value*> add_window_row(llvm::Value* channel, llvm::Value* mask, llvm::Value* row,
                                           std::span<llvm::Value* const> now) {
    std::vector<llvm::Value*> next(now.begin(), now.end()),
        weights(static_cast<size_t>(problem_.width() * problem_.group()));
    for (int64_t i = 0; i < problem_.reach(); ++i) {
      llvm::Value* values = nullptr;
      for (int64_t member = 0; member < problem_.group(); ++member) {
        llvm::Value* spread = nullptr;
        for (int64_t pixel = 0; pixel < problem_.pixels; ++pixel) {
          const int64_t place = problem_.tap_of(i, pixel), tap = place * problem_.group() + member;
          if (place < 0) continue;
          llvm::Value*& weight = weights[static_cast<size_t>(tap)];
          if (weight == nullptr) weight = load_weight(channel, row, tap);
          if (values == nullptr) values = load_image(channel, mask, row, i);
          if (spread == nullptr) spread = spread_in_groups(values, member);
          llvm::Value*& sum = next[static_cast<size_t>(pixel)];
          sum = builder_.CreateIntrinsic(llvm::Intrinsic::fma, {weight->getType()}, {spread, weight, sum});
        }
      }
    }
    return next;
  }

  // Lane by lane, channel `member` of the lane's group.
  llvm::Value* spread_in_groups(llvm::Value* values, int64_t member) {
    if (problem_.group() == 1) return values;
    llvm::SmallVector<int> from;
    for (int lane = 0; lane < lanes(); ++lane)
      from.push_back(static_cast<int>(lane / problem_.group() * problem_.group() + member));
    return builder_.CreateShuffleVector(values, from);
  }

  // Weight `tap` of a window row, counted with the channels of a group innermost.
  llvm::Value* load_weight(llvm::Value* channel, llvm::Value* row, int64_t tap) {
    llvm::Value* taps = scaffold_.plus(scaffold_.times(row, problem_.width() * problem_.group()), tap);
    llvm::Value* at = builder_.CreateNSWAdd(scaffold_.times(taps, problem_.padded_channels()), channel);
    return load_lanes(builder_, DType::kF32, scaffold_.float_at(scaffold_.buffers[1], at), lanes());
  }

  llvm::Value* load_image(llvm::Value* channel, llvm::Value* mask, llvm::Value* row, int64_t place) {
    return load_lanes(builder_, DType::kF32, image_at(row, place, channel), lanes(), mask);
  }
};

int lanes_of(CpuFeatures features) { return features.has(CpuFeature::kX86V4) ? 16 : 8; }

bool multiplies_bytes(std::span<const TensorType> operands) { return operands[0].dtype == DType::kU8; }

void plan_floats(DepthwiseProblem& problem, CpuFeatures features) {
  problem.pixels = problem.width() < kWideWindow ? kPixels : kPixelsOfWideWindows;
  problem.lanes = lanes_of(features);
  problem.block_channels = std::min(kBlockChannels, problem.padded_channels());
}

}  // namespace

bool is_depthwise(std::span<const TensorType> operands, const ops::Convolution& attributes) {
  const Shape& weight = operands[1].shape;
  const auto group = weight[1].constant();  // groups do not cross vectors
  return attributes.groups > 1 && group && kWidestGroup % *group == 0 &&
         weight[0] == Dim(attributes.groups * *group);
}

Fit supports_depthwise(std::span<const TensorType> operands, CpuFeatures features) {
  if (multiplies_bytes(operands)) return supports_depthwise_bytes(operands, features);
  if (operands[0].dtype != DType::kF32)
    return {false,
            fmt::format("depthwise convolutions of {} have no kernel template", name(operands[0].dtype))};
  return {};
}

LayoutRequest depthwise_layouts(std::span<const TensorType> operands, CpuFeatures features) {
  size_t rank = operands[0].rank();
  std::vector<int> image = channels_last(rank), window(rank);
  std::iota(window.begin(), window.end() - 2, 2);
  window[rank - 2] = 1;
  window[rank - 1] = 0;
  LayoutRequest request;
  const Layout weight = multiplies_bytes(operands) ? byte_window_layout(*operands[0].shape[1].constant())
                                                   : Layout::blocked(window, 0, lanes_of(features));
  request.operands = {Layout::permutation(image), weight};
  if (operands.size() > 2) request.operands.push_back(Layout{});
  request.results = {Layout::permutation(image)};
  return request;
}

TemplateKernel plan_depthwise(std::span<const TensorType> operands, const TensorType& result,
                              const ops::Convolution& attributes, int64_t outside,
                              const loops::Kernel& epilogue, const SymbolTable& symbols,
                              const Target& target) {
  const bool is_bytes = multiplies_bytes(operands);
  DepthwiseProblem problem{
      symbols, {operands.begin(), operands.end()}, image_geometry(operands, result, attributes), epilogue};
  problem.geometry.outside = outside;
  is_bytes ? plan_bytes(problem) : plan_floats(problem, features_of(target));
  const std::vector<Dim>& output = problem.geometry.output;
  TemplateKernel plan;
  plan.launch.symbols = symbol_arguments(epilogue, operands, result.shape);
  plan.launch.work_items = result.shape[0] * product({output.data(), output.size() - 1}) *
                           ceil_divide(output.back(), problem.pixels) * Dim(problem.chunks());
  plan.launch.item_cost =
      problem.products() * problem.pixels * std::min(problem.channels(), kItemChannels) / 30 + 50;
  plan.launch.scratch_bytes = problem.scratch_bytes();
  plan.key = fmt::format("depthwise stride {} padding {} of {} dilation {}", attributes.stride,
                         attributes.padding, outside, attributes.dilation) +
             describe_problem(operands, epilogue, plan.launch.symbols, symbols);
  plan.compile = [problem = std::move(problem), features = features_of(target),
                  arguments = plan.launch.symbols, is_bytes] {
    return is_bytes ? emit_depthwise_bytes(problem, features, arguments)
                    : FloatKernel(problem, features).emit(arguments);
  };
  return plan;
}

}  // namespace ingot::core::cpu
