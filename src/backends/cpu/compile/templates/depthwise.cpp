// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/templates/depthwise.h"

#include <fmt/ranges.h>

#include <numeric>

#include "backends/cpu/compile/llvm/elements.h"
#include "backends/cpu/compile/templates/epilogue.h"
#include "backends/cpu/compile/templates/image_rows.h"
#include "backends/cpu/compile/templates/scaffold.h"
#include "backends/cpu/compile/templates/target.h"
#include "ops/convolution.h"

namespace ingot::core::cpu {

namespace {

// Channels per group up to which several groups share a vector of channels.
constexpr int64_t kWidestGroup = 8;
// Pixels per tile, adjacent in a row of the result: enough accumulators to hide the latency of an FMA. Wide
// windows keep as many weights in registers as pixels, and must leave room for them.
constexpr int64_t kPixels = 8, kPixelsOfWideWindows = 6, kWideWindow = 8;
// Channels accumulated before one call of the epilogue.
constexpr int64_t kBlockChannels = 64;
// Channels per work item: enough to amortize the pointers of its pixels.
constexpr int64_t kItemChannels = 256;

struct DepthwiseProblem {
  SymbolTable symbols;
  std::vector<TensorType> operands;
  ImageGeometry geometry;  // one group of all channels
  Dim images;
  int lanes;
  loops::Kernel epilogue;

  int64_t channels() const { return geometry.channels; }
  int64_t padded_channels() const { return round_up(channels(), lanes); }
  int64_t block_channels() const { return std::min(kBlockChannels, padded_channels()); }
  int64_t chunks() const { return ceil_divide(channels(), kItemChannels); }
  int64_t width() const { return geometry.window.back(); }
  int64_t pixels() const { return width() < kWideWindow ? kPixels : kPixelsOfWideWindows; }
  // Elements of an image row from the first to the last that the tile's windows reach.
  int64_t reach() const {
    return (pixels() - 1) * geometry.stride.back() + (width() - 1) * geometry.dilation.back() + 1;
  }
  int64_t window_rows() const {
    return std::accumulate(geometry.window.begin(), geometry.window.end() - 1, int64_t{1},
                           std::multiplies<>());
  }
  int64_t group() const { return *operands[1].shape[1].constant(); }      // channels of a group
  int64_t products() const { return window_rows() * width() * group(); }  // per result
  int64_t sums_bytes() const { return pixels() * block_channels() * int64_t{sizeof(float)}; }
  int64_t table_bytes() const { return round_up(window_rows() * reach() * int64_t{sizeof(void*)}, 64); }
  int64_t zeros_bytes() const { return padded_channels() * int64_t{sizeof(float)}; }
  EpilogueShape epilogue_shape() const {
    EpilogueShape shape{1, {}, pixels(), block_channels(), channels() % block_channels() == 0};
    if (operands.size() > 2) shape.bias = operands[2];
    return shape;
  }
};

class DepthwiseKernel {
 public:
  DepthwiseKernel(const DepthwiseProblem& problem, CpuFeatures features)
      : problem_(problem),
        scaffold_(features, "depthwise", problem.symbols),
        builder_(scaffold_.builder),
        epilogue_(scaffold_.code, tile_epilogue(problem.epilogue, problem.epilogue_shape())) {}

  Image emit(const std::vector<std::string>& symbols) {
    epilogue_.load_arguments(scaffold_, problem_.operands.size(), symbols);
    for (const Dim& dim : problem_.geometry.input) input_.push_back(scaffold_.dims.emit(dim));
    for (const Dim& dim : problem_.geometry.output) output_.push_back(scaffold_.dims.emit(dim));
    emit_loop(builder_, number(0), number(problem_.padded_channels()), 1, [&](llvm::Value* i) {
      builder_.CreateStore(llvm::ConstantFP::get(builder_.getFloatTy(), 0.0), scaffold_.float_at(zeros(), i));
    });
    llvm::Value* tiles = scaffold_.ceil_divide(output_.back(), problem_.pixels());
    scaffold_.for_each_item([&](llvm::Value* item) {
      llvm::Value* tile = builder_.CreateUDiv(item, number(problem_.chunks()));
      llvm::Value* row = builder_.CreateUDiv(tile, tiles);
      llvm::Value* first = scaffold_.times(builder_.CreateURem(tile, tiles), problem_.pixels());
      llvm::Value* left =
          scaffold_.smaller(builder_.CreateNSWSub(output_.back(), first), number(problem_.pixels()));
      fill_table(row, first);
      llvm::Value* pixel = builder_.CreateNSWAdd(builder_.CreateNSWMul(row, output_.back()), first);
      llvm::Value* channel =
          scaffold_.times(builder_.CreateURem(item, number(problem_.chunks())), kItemChannels);
      emit_chunk(pixel, left, channel);
    });
    return scaffold_.finish();
  }

 private:
  llvm::Value* number(int64_t value) { return scaffold_.number(value); }
  llvm::Value* table() { return scaffold_.scratch(problem_.sums_bytes()); }
  llvm::Value* zeros() { return scaffold_.scratch(problem_.sums_bytes() + problem_.table_bytes()); }

  // Coordinate along a dim of the image of the window's element `tap`.
  llvm::Value* coordinate(llvm::Value* place, size_t dim, llvm::Value* tap) {
    const ImageGeometry& geometry = problem_.geometry;
    llvm::Value* first = scaffold_.plus(scaffold_.times(place, geometry.stride[dim]), -geometry.padding[dim]);
    return builder_.CreateNSWAdd(first, scaffold_.times(tap, geometry.dilation[dim]));
  }

  // Pointers to the elements of the image rows that the tile's windows reach: [window rows][reach]. `row`
  // counts the rows of all images of the result.
  void fill_table(llvm::Value* row, llvm::Value* first) {
    std::vector<llvm::Value*> place(output_.size());
    for (size_t dim = output_.size() - 1; dim-- > 0;) {
      place[dim] = builder_.CreateURem(row, output_[dim]);
      row = builder_.CreateUDiv(row, output_[dim]);
    }
    place.back() = first;
    fill_rows(place, 0, row, builder_.getTrue(), number(0));
  }

  // Recurses over the spatial dims: `pixel` is the index so far in the flattened images, `window_row` that in
  // the window.
  void fill_rows(std::span<llvm::Value* const> place, size_t dim, llvm::Value* pixel, llvm::Value* inside,
                 llvm::Value* window_row) {
    const ImageGeometry& geometry = problem_.geometry;
    const auto is_inside = [&](llvm::Value* at) {
      return builder_.CreateICmpULT(at, input_[dim]);
    };  // as unsigned, -1 is huge
    if (dim + 1 < place.size()) {
      emit_loop(builder_, number(0), number(geometry.window[dim]), 1, [&](llvm::Value* tap) {
        llvm::Value* at = coordinate(place[dim], dim, tap);
        llvm::Value* next = builder_.CreateNSWAdd(builder_.CreateNSWMul(pixel, input_[dim]), at);
        fill_rows(place, dim + 1, next, builder_.CreateAnd(inside, is_inside(at)),
                  builder_.CreateNSWAdd(scaffold_.times(window_row, geometry.window[dim]), tap));
      });
      return;
    }
    llvm::Value* start = coordinate(place[dim], dim, number(0));
    llvm::Value* slots =
        builder_.CreateGEP(builder_.getPtrTy(), table(), scaffold_.times(window_row, problem_.reach()));
    emit_loop(builder_, number(0), number(problem_.reach()), 1, [&](llvm::Value* i) {
      llvm::Value* at = builder_.CreateNSWAdd(start, i);
      llvm::Value* element = builder_.CreateNSWAdd(builder_.CreateNSWMul(pixel, input_[dim]), at);
      llvm::Value* pointer =
          scaffold_.float_at(scaffold_.buffers[0], scaffold_.times(element, problem_.channels()));
      llvm::Value* exists = builder_.CreateAnd(inside, is_inside(at));
      builder_.CreateStore(builder_.CreateSelect(exists, pointer, zeros()),
                           builder_.CreateGEP(builder_.getPtrTy(), slots, i));
    });
  }

  void emit_chunk(llvm::Value* pixel, llvm::Value* pixels, llvm::Value* channel) {
    llvm::Value* end = scaffold_.smaller(scaffold_.plus(channel, kItemChannels), number(problem_.channels()));
    int64_t width = problem_.block_channels();
    emit_loop(builder_, channel, end, width, [&](llvm::Value* block) {
      llvm::Value* columns =
          scaffold_.smaller(builder_.CreateNSWSub(number(problem_.channels()), block), number(width));
      emit_loop(builder_, number(0), columns, problem_.lanes,
                [&](llvm::Value* column) { emit_vector(builder_.CreateNSWAdd(block, column), column); });
      epilogue_.call(builder_, scaffold_.scratch(0), pixel, pixels, block, columns);
    });
  }

  // One vector of channels for all pixels of the tile.
  void emit_vector(llvm::Value* channel, llvm::Value* column) {
    llvm::Value* mask = nullptr;
    if (problem_.channels() % problem_.lanes != 0) {
      mask =
          first_lanes(builder_, builder_.CreateNSWSub(number(problem_.channels()), channel), problem_.lanes);
    }
    auto* vector = llvm::FixedVectorType::get(builder_.getFloatTy(), static_cast<unsigned>(problem_.lanes));
    std::vector<llvm::Value*> sums(static_cast<size_t>(problem_.pixels()),
                                   llvm::Constant::getNullValue(vector));
    sums = emit_carrying_loop(builder_, number(0), number(problem_.window_rows()), 1, sums,
                              [&](llvm::Value* row, std::span<llvm::Value* const> now) {
                                return add_window_row(channel, mask, row, now);
                              });
    for (int64_t pixel = 0; pixel < problem_.pixels(); ++pixel) {
      llvm::Value* place = scaffold_.plus(column, pixel * problem_.block_channels());
      store_lanes(builder_, DType::kF32, sums[static_cast<size_t>(pixel)],
                  scaffold_.float_at(scaffold_.scratch(0), place));
    }
  }

  // Each element of the image row is loaded once, and multiplied with the weights of each pixel whose window
  // contains it. With groups of several channels, a lane needs all channels of its group: one vector per
  // channel of a group, each lane with that channel of its own group.
  std::vector<llvm::Value*> add_window_row(llvm::Value* channel, llvm::Value* mask, llvm::Value* row,
                                           std::span<llvm::Value* const> now) {
    const int64_t stride = problem_.geometry.stride.back(), dilation = problem_.geometry.dilation.back();
    std::vector<llvm::Value*> next(now.begin(), now.end()),
        weights(static_cast<size_t>(problem_.width() * problem_.group()));
    for (int64_t i = 0; i < problem_.reach(); ++i) {
      llvm::Value* values = nullptr;
      for (int64_t member = 0; member < problem_.group(); ++member) {
        llvm::Value* spread = nullptr;
        for (int64_t pixel = 0; pixel < problem_.pixels(); ++pixel) {
          const int64_t offset = i - pixel * stride, tap = offset / dilation * problem_.group() + member;
          if (offset < 0 || offset % dilation != 0 || offset / dilation >= problem_.width()) continue;
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
    for (int lane = 0; lane < problem_.lanes; ++lane)
      from.push_back(static_cast<int>(lane / problem_.group() * problem_.group() + member));
    return builder_.CreateShuffleVector(values, from);
  }

  // Weight `tap` of a window row, counted with the channels of a group innermost.
  llvm::Value* load_weight(llvm::Value* channel, llvm::Value* row, int64_t tap) {
    llvm::Value* taps = scaffold_.plus(scaffold_.times(row, problem_.width() * problem_.group()), tap);
    llvm::Value* at = builder_.CreateNSWAdd(scaffold_.times(taps, problem_.padded_channels()), channel);
    return load_lanes(builder_, DType::kF32, scaffold_.float_at(scaffold_.buffers[1], at), problem_.lanes);
  }

  llvm::Value* load_image(llvm::Value* channel, llvm::Value* mask, llvm::Value* row, int64_t place) {
    llvm::Value* slot = scaffold_.plus(scaffold_.times(row, problem_.reach()), place);
    llvm::Value* image =
        builder_.CreateLoad(builder_.getPtrTy(), builder_.CreateGEP(builder_.getPtrTy(), table(), slot));
    return load_lanes(builder_, DType::kF32, scaffold_.float_at(image, channel), problem_.lanes, mask);
  }

  const DepthwiseProblem& problem_;
  Scaffold scaffold_;
  Builder& builder_;
  EpilogueFunction epilogue_;
  std::vector<llvm::Value*> input_, output_;  // spatial extents
};

int lanes_of(CpuFeatures features) { return features.has(CpuFeature::kX86V4) ? 16 : 8; }

}  // namespace

bool is_depthwise(std::span<const TensorType> operands, const ops::Convolution& attributes) {
  const Shape& weight = operands[1].shape;
  const auto group = weight[1].constant();  // groups do not cross vectors
  return attributes.groups > 1 && group && kWidestGroup % *group == 0 &&
         weight[0] == Dim(attributes.groups * *group);
}

LayoutRequest depthwise_layouts(std::span<const TensorType> operands, CpuFeatures features) {
  size_t rank = operands[0].rank();
  std::vector<int> image = channels_last(rank), window(rank);
  std::iota(window.begin(), window.end() - 2, 2);
  window[rank - 2] = 1;
  window[rank - 1] = 0;
  LayoutRequest request;
  request.operands = {Layout::permutation(image), Layout::blocked(window, 0, lanes_of(features))};
  if (operands.size() > 2) request.operands.push_back(Layout{});
  request.results = {Layout::permutation(image)};
  return request;
}

TemplateKernel plan_depthwise(std::span<const TensorType> operands, const TensorType& result,
                              const ops::Convolution& attributes, const loops::Kernel& epilogue,
                              const SymbolTable& symbols, const Target& target) {
  DepthwiseProblem problem{
      symbols, {operands.begin(), operands.end()}, image_geometry(operands, result, attributes),
      {},      lanes_of(features_of(target)),      epilogue};
  problem.images = result.shape[0];
  const std::vector<Dim>& output = problem.geometry.output;
  TemplateKernel plan;
  plan.launch.symbols = symbol_arguments(epilogue, operands, result.shape);
  plan.launch.work_items = problem.images * product({output.data(), output.size() - 1}) *
                           ceil_divide(output.back(), problem.pixels()) * Dim(problem.chunks());
  plan.launch.item_cost =
      problem.products() * problem.pixels() * std::min(problem.channels(), kItemChannels) / 30 + 50;
  plan.launch.scratch_bytes = problem.sums_bytes() + problem.table_bytes() + problem.zeros_bytes();
  plan.key = fmt::format("depthwise stride {} padding {} dilation {}", attributes.stride, attributes.padding,
                         attributes.dilation) +
             describe_problem(operands, epilogue, plan.launch.symbols, symbols);
  plan.compile = [problem = std::move(problem), features = features_of(target),
                  arguments = plan.launch.symbols] {
    return DepthwiseKernel(problem, features).emit(arguments);
  };
  return plan;
}

}  // namespace ingot::core::cpu
