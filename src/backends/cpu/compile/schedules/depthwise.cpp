// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/schedules/depthwise.h"

#include <fmt/ranges.h>

#include <numeric>

#include "backends/cpu/compile/llvm/elements.h"
#include "backends/cpu/compile/schedules/epilogue.h"
#include "backends/cpu/compile/schedules/image_rows.h"
#include "backends/cpu/compile/schedules/scaffold.h"

namespace ingot::core::cpu {

namespace {

// Pixels of a tile: as many sums as hide the latency of a multiply-add.
constexpr int kPixels = 8;
// Channels whose sums wait for one call of the epilogue.
constexpr int64_t kBlockChannels = 64;
// Channels of a work item: enough to pay for the pointers of its pixels.
constexpr int64_t kItemChannels = 256;

struct Problem {
  SymbolTable symbols;
  std::vector<TensorType> operands;
  ImageGeometry geometry;  // one group of all channels: the taps' pointers
  Dim rows;
  int lanes;
  loops::Kernel epilogue;

  int64_t channels() const { return geometry.channels; }
  int64_t padded_channels() const { return round_up(channels(), lanes); }
  int64_t block_channels() const { return std::min(kBlockChannels, padded_channels()); }
  int64_t chunks() const { return ceil_divide(channels(), kItemChannels); }
  int64_t sums_bytes() const { return kPixels * block_channels() * int64_t{sizeof(float)}; }
  int64_t table_bytes() const { return round_up(geometry.segments() * kPixels * int64_t{sizeof(void*)}, 64); }
  EpilogueShape epilogue_shape() const {
    EpilogueShape shape{1, {}, kPixels, block_channels(), channels() % block_channels() == 0};
    if (operands.size() > 2) shape.bias = operands[2];
    return shape;
  }
};

class DepthwiseKernel {
 public:
  DepthwiseKernel(const Problem& problem, CpuFeatures features)
      : problem_(problem),
        scaffold_(features, "depthwise", problem.symbols),
        builder_(scaffold_.builder),
        epilogue_(scaffold_.code, tile_epilogue(problem.epilogue, problem.epilogue_shape())) {}

  Image emit(const std::vector<std::string>& symbols) {
    epilogue_.load_arguments(scaffold_, problem_.operands.size(), symbols);
    llvm::Value* rows = scaffold_.dims.emit(problem_.rows);
    begin_image_rows(request(nullptr, nullptr), problem_.geometry, kPixels);
    scaffold_.for_each_item([&](llvm::Value* item) {
      llvm::Value* row = scaffold_.times(builder_.CreateUDiv(item, number(problem_.chunks())), kPixels);
      llvm::Value* left = scaffold_.smaller(builder_.CreateNSWSub(rows, row), number(kPixels));
      RowRequest pixels = request(row, left);
      fill_image_rows(pixels, problem_.geometry, kPixels);
      llvm::Value* channel =
          scaffold_.times(builder_.CreateURem(item, number(problem_.chunks())), kItemChannels);
      emit_chunk(pixels, channel);
    });
    return scaffold_.finish();
  }

 private:
  llvm::Value* number(int64_t value) { return scaffold_.number(value); }

  RowRequest request(llvm::Value* row, llvm::Value* rows) {
    int64_t table = problem_.sums_bytes(), extra = table + problem_.table_bytes();
    return {builder_, scaffold_.dims, scaffold_.buffers,        row,
            rows,     number(0),      scaffold_.scratch(table), scaffold_.scratch(extra)};
  }

  void emit_chunk(const RowRequest& pixels, llvm::Value* channel) {
    llvm::Value* end = scaffold_.smaller(scaffold_.plus(channel, kItemChannels), number(problem_.channels()));
    int64_t width = problem_.block_channels();
    emit_loop(builder_, channel, end, width, [&](llvm::Value* block) {
      llvm::Value* columns =
          scaffold_.smaller(builder_.CreateNSWSub(number(problem_.channels()), block), number(width));
      emit_loop(builder_, number(0), columns, problem_.lanes, [&](llvm::Value* column) {
        emit_vector(pixels.table, builder_.CreateNSWAdd(block, column), column);
      });
      epilogue_.call(builder_, scaffold_.scratch(0), pixels.row, pixels.rows, block, columns);
    });
  }

  // One vector of channels for all pixels of the tile.
  void emit_vector(llvm::Value* table, llvm::Value* channel, llvm::Value* column) {
    llvm::Value* mask = nullptr;
    if (problem_.channels() % problem_.lanes != 0) {
      mask =
          first_lanes(builder_, builder_.CreateNSWSub(number(problem_.channels()), channel), problem_.lanes);
    }
    auto* vector = llvm::FixedVectorType::get(builder_.getFloatTy(), static_cast<unsigned>(problem_.lanes));
    std::vector<llvm::Value*> sums(kPixels, llvm::Constant::getNullValue(vector));
    sums = emit_carrying_loop(builder_, number(0), number(problem_.geometry.segments()), 1, sums,
                              [&](llvm::Value* tap, std::span<llvm::Value* const> now) {
                                return add_tap(table, channel, mask, tap, now);
                              });
    for (int pixel = 0; pixel < kPixels; ++pixel) {
      llvm::Value* place = scaffold_.plus(column, pixel * problem_.block_channels());
      store_lanes(builder_, DType::kF32, sums[static_cast<size_t>(pixel)],
                  scaffold_.float_at(scaffold_.scratch(0), place));
    }
  }

  std::vector<llvm::Value*> add_tap(llvm::Value* table, llvm::Value* channel, llvm::Value* mask,
                                    llvm::Value* tap, std::span<llvm::Value* const> now) {
    llvm::Value* at = builder_.CreateNSWAdd(scaffold_.times(tap, problem_.padded_channels()), channel);
    llvm::Value* weight =
        load_lanes(builder_, DType::kF32, scaffold_.float_at(scaffold_.buffers[1], at), problem_.lanes);
    std::vector<llvm::Value*> next;
    for (int pixel = 0; pixel < kPixels; ++pixel) {
      llvm::Value* slot = scaffold_.plus(scaffold_.times(tap, kPixels), pixel);
      llvm::Value* image =
          builder_.CreateLoad(builder_.getPtrTy(), builder_.CreateGEP(builder_.getPtrTy(), table, slot));
      llvm::Value* numbers =
          load_lanes(builder_, DType::kF32, scaffold_.float_at(image, channel), problem_.lanes, mask);
      next.push_back(builder_.CreateIntrinsic(llvm::Intrinsic::fma, {weight->getType()},
                                              {numbers, weight, now[static_cast<size_t>(pixel)]}));
    }
    return next;
  }

  const Problem& problem_;
  Scaffold scaffold_;
  Builder& builder_;
  EpilogueFunction epilogue_;
};

int lanes_of(CpuFeatures features) { return features.has(CpuFeature::kX86V4) ? 16 : 8; }

}  // namespace

bool is_depthwise(std::span<const TensorType> operands, const ops::Convolution& attributes) {
  const Shape& weight = operands[1].shape;
  return attributes.groups > 1 && weight[1] == Dim(1) && weight[0] == Dim(attributes.groups);
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

ScheduledKernel plan_depthwise(std::span<const TensorType> operands, const TensorType& result,
                               const ops::Convolution& attributes, const loops::Kernel& epilogue,
                               const SymbolTable& symbols, const Target& target) {
  Problem problem{symbols, {operands.begin(), operands.end()}, image_geometry(operands, result, attributes),
                  {},      lanes_of(target.features),          epilogue};
  problem.geometry.group_channels = problem.padded_channels();  // what a pointer must be able to reach
  problem.rows = result.shape[0] * product(problem.geometry.output);
  ScheduledKernel plan;
  plan.symbols = symbol_arguments(epilogue, operands, {&problem.rows, 1});
  plan.work_items = ceil_divide(problem.rows, kPixels) * Dim(problem.chunks());
  int64_t taps = problem.geometry.segments();
  plan.item_cost = taps * kPixels * std::min(problem.channels(), kItemChannels) / 30 + 50;
  plan.scratch_bytes = problem.sums_bytes() + problem.table_bytes() + problem.geometry.extra_bytes(kPixels);
  plan.key = fmt::format("depthwise input {} weight {} stride {} padding {} dilation {}\n{}\n{}",
                         to_string(operands[0]), to_string(operands[1]), attributes.stride,
                         attributes.padding, attributes.dilation, loops::to_string(epilogue), target.text());
  for (const TensorType& type : operands) plan.key += "\n" + to_string(type);  // a bias or none, too
  plan.compile = [problem = std::move(problem), features = target.features, arguments = plan.symbols] {
    return DepthwiseKernel(problem, features).emit(arguments);
  };
  return plan;
}

}  // namespace ingot::core::cpu
