// SPDX-License-Identifier: Apache-2.0
// What kernels of depthwise convolutions share: the loops over tiles of pixels and blocks of channels, and
// the pointers to the image's elements.
#pragma once

#include <numeric>

#include "backends/cpu/compile/templates/epilogue.h"
#include "backends/cpu/compile/templates/image_rows.h"
#include "backends/cpu/compile/templates/scaffold.h"

namespace ingot::core::cpu {

// Channels per work item: enough to amortize the pointers of its pixels.
inline constexpr int64_t kItemChannels = 256;

// Pointers that are computed together.
inline constexpr int64_t kPointerLanes = 8;

struct DepthwiseProblem {
  SymbolTable symbols;
  std::vector<TensorType> operands;
  ImageGeometry geometry;  // one group of all channels
  loops::Kernel epilogue;
  int64_t pixels = 0;          // of a tile, adjacent in a row of the result
  int64_t lanes = 0;           // channels that are computed together
  int64_t block_channels = 0;  // that are accumulated before one call of the epilogue
  DType sum = DType::kF32;

  int64_t channels() const { return geometry.channels; }
  int64_t padded_channels() const { return round_up(channels(), lanes); }
  int64_t chunks() const { return ceil_divide(channels(), kItemChannels); }
  int64_t width() const { return geometry.window.back(); }
  // Elements of an image row from the first to the last that the tile's windows reach.
  int64_t reach() const {
    return (pixels - 1) * geometry.stride.back() + (width() - 1) * geometry.dilation.back() + 1;
  }
  int64_t window_rows() const {
    return std::accumulate(geometry.window.begin(), geometry.window.end() - 1, int64_t{1},
                           std::multiplies<>());
  }
  int64_t group() const { return *operands[1].shape[1].constant(); }      // channels of a group
  int64_t products() const { return window_rows() * width() * group(); }  // per result
  int64_t sums_bytes() const { return row_bytes(sum, pixels * block_channels); }
  int64_t table_row() const { return round_up(reach(), kPointerLanes); }  // pointers, some of them not read
  int64_t table_bytes() const { return round_up(window_rows() * table_row() * int64_t{sizeof(void*)}, 64); }
  int64_t outside_bytes() const { return row_bytes(geometry.dtype, padded_channels()); }
  int64_t scratch_bytes() const { return sums_bytes() + table_bytes() + outside_bytes(); }
  EpilogueShape epilogue_shape() const;
  // The tap of a pixel's window that element `i` of the reach is; -1: it is not in the window.
  int64_t tap_of(int64_t i, int64_t pixel) const;
};

// Scratch: sums [pixels][block_channels], table of pointers, an element outside of the image.
class DepthwiseKernel {
 public:
  DepthwiseKernel(const DepthwiseProblem& problem, CpuFeatures features);
  virtual ~DepthwiseKernel() = default;
  Image emit(const std::vector<std::string>& symbols);

 protected:
  // The sums of `lanes` channels from `channel` on, for all pixels of the tile; `column`: the first of them
  // in its block.
  virtual void emit_lanes(llvm::Value* channel, llvm::Value* column) = 0;

  llvm::Value* number(int64_t value) { return scaffold_.number(value); }
  // Which of the lanes from `channel` on exist; null: all.
  llvm::Value* existing_lanes(llvm::Value* channel);
  // Element `place` of the reach in a row of the window, at `channel`.
  llvm::Value* image_at(llvm::Value* row, int64_t place, llvm::Value* channel);

  const DepthwiseProblem& problem_;
  Scaffold scaffold_;
  Builder& builder_;

 private:
  llvm::Value* table() { return scaffold_.scratch(problem_.sums_bytes()); }
  llvm::Value* outside() { return scaffold_.scratch(problem_.sums_bytes() + problem_.table_bytes()); }
  llvm::Value* element_at(llvm::Value* pointer, llvm::Value* index);
  llvm::Value* coordinate(llvm::Value* place, size_t dim, llvm::Value* tap);
  void fill_outside();
  void fill_table(llvm::Value* row, llvm::Value* first);
  void fill_rows(std::span<llvm::Value* const> place, size_t dim, llvm::Value* pixel, llvm::Value* inside,
                 llvm::Value* window_row);
  void fill_row(llvm::Value* start, llvm::Value* pixel, llvm::Value* inside, llvm::Value* slots);
  void emit_item(llvm::Value* item, llvm::Value* tiles);
  void emit_chunk(llvm::Value* pixel, llvm::Value* pixels, llvm::Value* channel);

  EpilogueFunction epilogue_;
  std::vector<llvm::Value*> input_, output_;  // spatial extents
};

}  // namespace ingot::core::cpu
