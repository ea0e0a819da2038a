// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/templates/winograd.h"

#include <array>

#include <fmt/format.h>

#include "backends/cpu/compile/templates/epilogue.h"
#include "backends/cpu/compile/templates/image_rows.h"
#include "backends/cpu/compile/templates/scaffold.h"
#include "backends/cpu/compile/templates/target.h"
#include "backends/cpu/compile/templates/tile.h"
#include "backends/steps/members.h"
#include "ops/convolution.h"
#include "ops/window.h"

namespace ingot::core::cpu {

namespace {

constexpr int64_t kPositions = 16;                    // of a transformed tile: 4x4
constexpr size_t kImage = 2, kWindow = 3, kBias = 4;  // operands
constexpr int64_t kSide = 2;  // pixels of the result that a tile covers in height and width

constexpr int64_t kFewestChannels = 32;  // with fewer, the transforms cost more than they save
constexpr int64_t kMostChannels = 512;   // with more, a panel's weights do not fit the second-level cache
constexpr int64_t kFewestTiles = 32;     // with fewer, reading 16/9 of the weights costs more than it saves
constexpr int64_t kLargestImage =
    32 << 20;  // bytes of the transformed image: larger ones do not fit any cache

struct WinogradProblem {
  SymbolTable symbols;
  std::vector<TensorType> operands;
  TensorType result;
  loops::Kernel epilogue;
  TileShape tile;

  Dim tiles() const { return operands[0].shape[1]; }
  int64_t channels() const { return *operands[0].shape[2].constant(); }
  int64_t columns() const { return *result.shape[1].constant(); }
  int64_t height() const { return *result.shape[2].constant(); }
  int64_t width() const { return *result.shape[3].constant(); }
  int64_t tiles_down() const { return ceil_divide(height(), kSide); }
  int64_t tiles_across() const { return ceil_divide(width(), kSide); }
  int64_t panels() const { return ceil_divide(columns(), tile.columns()); }
  bool whole_columns() const { return columns() % tile.columns() == 0; }

  // Scratch: accumulators [16][tile.rows][tile columns]; pixels [2][2 * tile.rows][tile columns]; row
  // pointers.
  int64_t sums_bytes() const { return kPositions * tile.rows * tile.columns() * int64_t{sizeof(float)}; }
  int64_t line_numbers() const { return kSide * tile.rows * tile.columns(); }
  int64_t pixel_bytes() const { return kSide * line_numbers() * int64_t{sizeof(float)}; }
  int64_t table_bytes() const { return round_up(tile.rows * int64_t{sizeof(void*)}, 64); }
};

EpilogueShape epilogue_shape(const WinogradProblem& problem) {
  EpilogueShape shape{1, {}, kSide * problem.tile.rows, problem.tile.columns(), problem.whole_columns()};
  if (problem.operands.size() > kBias) shape.bias = problem.operands[kBias];
  return shape;
}

// Recomputes the pixels of a tile that are not finite by the definition of convolution: a kernel like an
// epilogue, which reads and writes the tile.
loops::Kernel direct_kernel(const WinogradProblem& problem) {
  const TensorType& result = problem.result;
  loops::Kernel kernel = plain_epilogue(result);
  kernel.name = "direct";
  kernel.buffers = {{"pixels", {DType::kF32, result.shape, {}}, loops::Access::kReadWrite},
                    {"image", problem.operands[kImage], loops::Access::kRead},
                    {"window", problem.operands[kWindow], loops::Access::kRead}};
  kernel.symbols = problem.symbols;
  std::vector<Dim> at;
  for (const loops::Loop& loop : kernel.parallel) at.push_back(Dim::symbol(loop.variable));
  const Shape& image = problem.operands[kImage].shape;
  loops::Stage sum;
  sum.name = "direct";
  sum.combine = loops::Combine::kAdd;
  sum.reduce = {{"$c", image[1]}, {"$u", 3}, {"$v", 3}};
  const Dim c = Dim::symbol("$c"), u = Dim::symbol("$u"), v = Dim::symbol("$v");
  const ops::WindowElement element = ops::window_element(
      {image[2], image[3]}, {at[2], at[3]}, {u, v}, {1, 1},
      {*(result.shape[2] - image[2] + 2).constant() / 2, *(result.shape[3] - image[3] + 2).constant() / 2},
      {1, 1}, /*guarded=*/true);
  const loops::Expr pixel = loops::load(1, DType::kF32, {at[0], c, element.place[0], element.place[1]});
  const loops::Expr factor = loops::load(2, DType::kF32, {at[1], c, u, v});
  const loops::Expr zero = loops::constant(DType::kF32, 0);
  sum.value = ops::guarded(element.guard, loops::binary(loops::Binary::kMultiply, pixel, factor), zero);
  const loops::Expr known = loops::load(0, DType::kF32, at);
  const loops::Expr is_finite =
      ops::below(loops::unary(loops::Unary::kAbsolute, known), ops::infinity(DType::kF32));
  loops::Stage replace;
  replace.name = "pixel";
  replace.value = loops::select(is_finite, known, loops::local(0, DType::kF32));
  replace.store = loops::Store{0, {Dim::symbol("$i"), Dim::symbol("$j")}};
  kernel.stages = {sum, replace};
  EpilogueShape shape = epilogue_shape(problem);
  shape.bias.reset();
  return tile_epilogue(kernel, shape);
}

using Four = std::array<llvm::Value*, 4>;
using Two = std::array<llvm::Value*, kSide>;

class WinogradKernel {
 public:
  WinogradKernel(const WinogradProblem& problem, CpuFeatures features)
      : problem_(problem),
        scaffold_(features, "winograd", problem.symbols),
        builder_(scaffold_.builder),
        tiles_(scaffold_.code, problem.tile, TileOperand::kRows,
               {1, problem.channels(), problem.tiles().constant()}, /*prefetch=*/false),
        epilogue_(scaffold_.code, tile_epilogue(problem.epilogue, epilogue_shape(problem))),
        direct_(scaffold_.code, direct_kernel(problem)) {}

  // Item order: panels, within a panel tiles: its weights stay in the cache.
  Image emit(const std::vector<std::string>& symbols) {
    epilogue_.load_arguments(scaffold_, problem_.operands.size(), symbols, kBias);
    direct_.prepare(builder_, scaffold_.dims, std::span(scaffold_.buffers).subspan(kImage, 2));
    zero_times_pixels_ = stack_array(builder_, vector(), 1, problem_.tile.lanes * int64_t{sizeof(float)});
    all_tiles_ = scaffold_.dims.emit(problem_.tiles());
    llvm::Value* blocks = scaffold_.ceil_divide(all_tiles_, problem_.tile.rows);
    scaffold_.for_each_item([&](llvm::Value* item) {
      llvm::Value* panel = builder_.CreateUDiv(item, blocks);
      llvm::Value* first = scaffold_.times(builder_.CreateURem(item, blocks), problem_.tile.rows);
      llvm::Value* end = scaffold_.smaller(scaffold_.plus(first, problem_.tile.rows), all_tiles_);
      multiply(panel, first, builder_.CreateNSWSub(end, first));
      finish_lines(scaffold_.times(panel, problem_.tile.columns()), first, end);
    });
    return scaffold_.finish();
  }

 private:
  llvm::Value* number(int64_t value) { return scaffold_.number(value); }
  llvm::Value* larger(llvm::Value* a, llvm::Value* b) {
    return builder_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, a, b);
  }
  llvm::Value* sums() { return scaffold_.scratch(0); }
  llvm::Value* pixels() { return scaffold_.scratch(problem_.sums_bytes()); }
  llvm::Value* table() { return scaffold_.scratch(problem_.sums_bytes() + problem_.pixel_bytes()); }
  llvm::Type* vector() {
    return llvm::FixedVectorType::get(builder_.getFloatTy(), static_cast<unsigned>(problem_.tile.lanes));
  }
  llvm::Align alignment() { return llvm::Align(problem_.tile.lanes * sizeof(float)); }

  // The 16 products of a panel and a block of tiles.
  void multiply(llvm::Value* panel, llvm::Value* first, llvm::Value* rows) {
    const int64_t panel_numbers = problem_.channels() * problem_.tile.columns();
    llvm::Value* first_panel = scaffold_.times(panel, kPositions);
    emit_loop(builder_, number(0), number(kPositions), 1, [&](llvm::Value* position) {
      point_at_rows(position, first);
      llvm::Value* weights = scaffold_.float_at(
          scaffold_.buffers[1], scaffold_.times(builder_.CreateNSWAdd(first_panel, position), panel_numbers));
      llvm::Value* result = scaffold_.float_at(
          sums(), scaffold_.times(position, int64_t{problem_.tile.rows} * problem_.tile.columns()));
      tiles_.call(builder_, rows,
                  {table(), number(0), number(1), number(problem_.channels()), weights, result});
    });
  }

  // Missing rows repeat the last one.
  void point_at_rows(llvm::Value* position, llvm::Value* first) {
    llvm::Value* last = scaffold_.plus(all_tiles_, -1);
    llvm::Value* before = builder_.CreateNSWMul(position, all_tiles_);
    for (int i = 0; i < problem_.tile.rows; ++i) {
      llvm::Value* tile = builder_.CreateNSWAdd(before, scaffold_.smaller(scaffold_.plus(first, i), last));
      llvm::Value* row = scaffold_.float_at(scaffold_.buffers[0], scaffold_.times(tile, problem_.channels()));
      builder_.CreateStore(
          row, builder_.CreateConstGEP1_64(builder_.getPtrTy(), table(), static_cast<uint64_t>(i)));
    }
  }

  // Adjacent tiles in a line of tiles are two runs of pixels.
  void finish_lines(llvm::Value* column, llvm::Value* first, llvm::Value* end) {
    llvm::Value* across = number(problem_.tiles_across());
    llvm::Value* first_line = builder_.CreateUDiv(first, across);
    llvm::Value* end_line = scaffold_.plus(builder_.CreateUDiv(scaffold_.plus(end, -1), across), 1);
    emit_loop(builder_, first_line, end_line, 1, [&](llvm::Value* line) {
      llvm::Value* line_start = builder_.CreateNSWMul(line, across);
      builder_.CreateStore(llvm::Constant::getNullValue(vector()), zero_times_pixels_);
      llvm::Value* begin = larger(first, line_start);
      llvm::Value* stop = scaffold_.smaller(end, builder_.CreateNSWAdd(line_start, across));
      emit_loop(builder_, begin, stop, 1, [&](llvm::Value* tile) {
        finish_tile(builder_.CreateNSWSub(tile, first), builder_.CreateNSWSub(tile, begin));
      });
      store_line(line, builder_.CreateNSWSub(begin, line_start), builder_.CreateNSWSub(stop, begin), column);
    });
  }

  static Two times_result_matrix(Builder& b, const Four& m) {
    llvm::Value* even = b.CreateFAdd(b.CreateFAdd(m[0], m[1]), m[2]);
    llvm::Value* odd = b.CreateFSub(b.CreateFSub(m[1], m[2]), m[3]);
    return {even, odd};
  }

  // Accumulators of tile `row` of the block -> its 2x2 pixels at `place` of the run.
  void finish_tile(llvm::Value* row, llvm::Value* place) {
    const int64_t width = problem_.tile.columns();
    llvm::Value* zero = llvm::Constant::getNullValue(vector());
    llvm::Value* check = builder_.CreateLoad(vector(), zero_times_pixels_);
    for (int v = 0; v < problem_.tile.vectors; ++v) {
      std::array<Four, kSide> half;  // [result row][column of the tile]
      for (size_t j = 0; j < 4; ++j) {
        Four column;
        for (size_t i = 0; i < 4; ++i) {
          const auto first = (static_cast<int64_t>(4 * i + j) * problem_.tile.rows) * width;
          column[i] =
              load(sums(), scaffold_.plus(scaffold_.times(row, width), first + v * problem_.tile.lanes));
        }
        const Two results = times_result_matrix(builder_, column);
        for (size_t i = 0; i < kSide; ++i) half[i][j] = results[i];
      }
      for (size_t i = 0; i < kSide; ++i) {
        const Two results = times_result_matrix(builder_, half[i]);
        for (size_t j = 0; j < kSide; ++j) {
          const auto line = static_cast<int64_t>(i) * problem_.line_numbers();
          const int64_t first = line + static_cast<int64_t>(j) * width + v * problem_.tile.lanes;
          store(results[j], pixels(), scaffold_.plus(scaffold_.times(place, kSide * width), first));
          check = builder_.CreateIntrinsic(llvm::Intrinsic::fma, {vector()}, {results[j], zero, check});
        }
      }
    }
    builder_.CreateStore(check, zero_times_pixels_);
  }

  llvm::Value* load(llvm::Value* base, llvm::Value* index) {
    return builder_.CreateAlignedLoad(vector(), scaffold_.float_at(base, index), alignment());
  }
  void store(llvm::Value* value, llvm::Value* base, llvm::Value* index) {
    builder_.CreateAlignedStore(value, scaffold_.float_at(base, index), alignment());
  }

  // The last pixels of an image of odd size do not exist.
  void store_line(llvm::Value* line, llvm::Value* tile, llvm::Value* count, llvm::Value* column) {
    const int64_t height = problem_.height(), width = problem_.width(), down = problem_.tiles_down();
    llvm::Value* image = builder_.CreateUDiv(line, number(down));
    llvm::Value* y = scaffold_.times(builder_.CreateURem(line, number(down)), kSide);
    llvm::Value* x = scaffold_.times(tile, kSide);
    llvm::Value* pixel_line = builder_.CreateNSWAdd(scaffold_.times(image, height), y);
    llvm::Value* pixel = builder_.CreateNSWAdd(scaffold_.times(pixel_line, width), x);
    llvm::Value* run =
        scaffold_.smaller(scaffold_.times(count, kSide), builder_.CreateNSWSub(number(width), x));
    llvm::Value* columns = scaffold_.smaller(builder_.CreateNSWSub(number(problem_.columns()), column),
                                             number(problem_.tile.columns()));
    finish_pixels(pixels(), pixel, run, column, columns);
    emit_if(builder_, builder_.CreateICmpSLT(scaffold_.plus(y, 1), number(height)), [&] {
      llvm::Value* below = scaffold_.float_at(pixels(), number(problem_.line_numbers()));
      finish_pixels(below, scaffold_.plus(pixel, width), run, column, columns);
    });
  }

  // 0 * x is NaN if x is not finite, and so is every sum with it.
  void finish_pixels(llvm::Value* line, llvm::Value* pixel, llvm::Value* run, llvm::Value* column,
                     llvm::Value* columns) {
    llvm::Value* check = builder_.CreateLoad(vector(), zero_times_pixels_);
    emit_if(builder_, builder_.CreateOrReduce(builder_.CreateFCmpUNO(check, check)),
            [&] { direct_.call(builder_, line, pixel, run, column, columns); });
    epilogue_.call(builder_, line, pixel, run, column, columns);
  }

  const WinogradProblem& problem_;
  Scaffold scaffold_;
  Builder& builder_;
  TileFunctions tiles_;
  EpilogueFunction epilogue_, direct_;
  llvm::Value* zero_times_pixels_ = nullptr;  // a vector on the stack: their sum along a line of tiles
  llvm::Value* all_tiles_ = nullptr;
};

}  // namespace

bool is_faster_by_winograd(const Node& convolution, CpuFeatures features) {
  const TensorType& weight = convolution.operand_type(1);
  const TensorType& result = convolution.results[0]->type;
  const auto attributes = convolution.attributes<ops::Convolution>();
  if (weight.dtype != DType::kF32 || weight.rank() != 4 || attributes.groups != 1) return false;
  if (!all_one(attributes.stride) || !all_one(attributes.dilation)) return false;
  const auto outputs = weight.shape[0].constant(), inputs = weight.shape[1].constant();
  const auto height = result.shape[2].constant(), width = result.shape[3].constant();
  if (!outputs || !inputs || !height || !width) return false;
  if (weight.shape[2] != Dim(3) || weight.shape[3] != Dim(3)) return false;
  const int64_t tiles = ceil_divide(*height, kSide) * ceil_divide(*width, kSide);
  const int64_t images = result.shape[0].constant().value_or(1);
  const int64_t image_bytes = kPositions * images * tiles * *inputs * int64_t{sizeof(float)};
  return tiles >= kFewestTiles && image_bytes <= kLargestImage && *inputs >= kFewestChannels &&
         *inputs <= kMostChannels && *outputs >= kFewestChannels &&
         choose_tile(*outputs, features).vectors > 1;
}

Fit supports_winograd(std::span<const TensorType> operands, const TensorType& result) {
  for (const TensorType& type : operands) {
    if (type.dtype != DType::kF32) return {false, "the Winograd template supports f32 only"};
  }
  for (const Dim& dim : {operands[1].shape[1], operands[1].shape[2], result.shape[2], result.shape[3]}) {
    if (!dim.is_constant() || dim == Dim(0))
      return {false, "the Winograd template requires constant channels and image sizes"};
  }
  return {};
}

LayoutRequest winograd_layouts(std::span<const TensorType> operands, CpuFeatures features) {
  const TileShape tile = choose_tile(*operands[1].shape[1].constant(), features);
  LayoutRequest request;
  request.operands = {Layout{}, Layout::blocked(std::array{1, 0, 2}, 1, tile.columns()), std::nullopt,
                      Layout{}};
  if (operands.size() > kBias) request.operands.push_back(Layout{});
  request.results = {Layout::permutation(channels_last(4))};
  return request;
}

TemplateKernel plan_winograd(std::span<const TensorType> operands, const TensorType& result,
                             const loops::Kernel& epilogue, const SymbolTable& symbols,
                             const Target& target) {
  WinogradProblem problem{symbols,
                          {operands.begin(), operands.end()},
                          result,
                          epilogue,
                          choose_tile(*result.shape[1].constant(), features_of(target))};
  const TileShape& tile = problem.tile;
  TemplateKernel plan;
  plan.launch.symbols = symbol_arguments(epilogue, operands, result.shape);
  plan.launch.work_items = core::ceil_divide(problem.tiles(), tile.rows) * Dim(problem.panels());
  plan.launch.item_cost = kPositions * tile.rows * tile.columns() * problem.channels() / 50;
  plan.launch.scratch_bytes = problem.sums_bytes() + problem.pixel_bytes() + problem.table_bytes();
  plan.key =
      fmt::format("winograd {} tile {}x{}x{}", to_string(result), tile.rows, tile.vectors, tile.lanes) +
      describe_problem(operands, epilogue, plan.launch.symbols, symbols);
  plan.compile = [problem = std::move(problem), features = features_of(target),
                  arguments = plan.launch.symbols] {
    return WinogradKernel(problem, features).emit(arguments);
  };
  return plan;
}

}  // namespace ingot::core::cpu
