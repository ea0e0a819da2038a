// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/templates/depthwise_kernel.h"

#include "backends/cpu/compile/llvm/elements.h"

namespace ingot::core::cpu {

EpilogueShape DepthwiseProblem::epilogue_shape() const {
  EpilogueShape shape{1, {}, pixels, block_channels, channels() % block_channels == 0, sum};
  if (operands.size() > 2) shape.bias = operands[2];
  return shape;
}

int64_t DepthwiseProblem::tap_of(int64_t i, int64_t pixel) const {
  const int64_t offset = i - pixel * geometry.stride.back(), dilation = geometry.dilation.back();
  const bool is_tap = offset >= 0 && offset % dilation == 0 && offset / dilation < width();
  return is_tap ? offset / dilation : -1;
}

DepthwiseKernel::DepthwiseKernel(const DepthwiseProblem& problem, CpuFeatures features)
    : problem_(problem),
      scaffold_(features, "depthwise", problem.symbols),
      builder_(scaffold_.builder),
      epilogue_(scaffold_.code, tile_epilogue(problem.epilogue, problem.epilogue_shape())) {}

Image DepthwiseKernel::emit(const std::vector<std::string>& symbols) {
  epilogue_.load_arguments(scaffold_, problem_.operands.size(), symbols);
  for (const Dim& dim : problem_.geometry.input) input_.push_back(scaffold_.dims.emit(dim));
  for (const Dim& dim : problem_.geometry.output) output_.push_back(scaffold_.dims.emit(dim));
  fill_outside();
  llvm::Value* tiles = scaffold_.ceil_divide(output_.back(), problem_.pixels);
  scaffold_.for_each_item([&](llvm::Value* item) { emit_item(item, tiles); });
  return scaffold_.finish();
}

// Numbers other than zero are bytes.
void DepthwiseKernel::fill_outside() {
  llvm::Value* byte = builder_.getInt8(static_cast<uint8_t>(problem_.geometry.outside));
  emit_loop(builder_, number(0), number(problem_.outside_bytes()), 1,
            [&](llvm::Value* i) { builder_.CreateStore(byte, scaffold_.byte_at(outside(), i)); });
}

void DepthwiseKernel::emit_item(llvm::Value* item, llvm::Value* tiles) {
  llvm::Value* tile = builder_.CreateUDiv(item, number(problem_.chunks()));
  llvm::Value* row = builder_.CreateUDiv(tile, tiles);
  llvm::Value* first = scaffold_.times(builder_.CreateURem(tile, tiles), problem_.pixels);
  llvm::Value* left =
      scaffold_.smaller(builder_.CreateNSWSub(output_.back(), first), number(problem_.pixels));
  fill_table(row, first);
  llvm::Value* pixel = builder_.CreateNSWAdd(builder_.CreateNSWMul(row, output_.back()), first);
  llvm::Value* channel = scaffold_.times(builder_.CreateURem(item, number(problem_.chunks())), kItemChannels);
  emit_chunk(pixel, left, channel);
}

llvm::Value* DepthwiseKernel::element_at(llvm::Value* pointer, llvm::Value* index) {
  return builder_.CreateGEP(stored_type(builder_, problem_.geometry.dtype), pointer, index);
}

// Coordinate along a dim of the image of the window's element `tap`.
llvm::Value* DepthwiseKernel::coordinate(llvm::Value* place, size_t dim, llvm::Value* tap) {
  const ImageGeometry& geometry = problem_.geometry;
  llvm::Value* first = scaffold_.plus(scaffold_.times(place, geometry.stride[dim]), -geometry.padding[dim]);
  return builder_.CreateNSWAdd(first, scaffold_.times(tap, geometry.dilation[dim]));
}

// Pointers to the elements of the image rows that the tile's windows reach: [window rows][reach]. `row`
// counts the rows of all images of the result.
void DepthwiseKernel::fill_table(llvm::Value* row, llvm::Value* first) {
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
void DepthwiseKernel::fill_rows(std::span<llvm::Value* const> place, size_t dim, llvm::Value* pixel,
                                llvm::Value* inside, llvm::Value* window_row) {
  if (dim + 1 == place.size()) {
    llvm::Value* slots =
        builder_.CreateGEP(builder_.getPtrTy(), table(), scaffold_.times(window_row, problem_.table_row()));
    return fill_row(coordinate(place[dim], dim, number(0)), pixel, inside, slots);
  }
  const int64_t extent = problem_.geometry.window[dim];
  emit_loop(builder_, number(0), number(extent), 1, [&](llvm::Value* tap) {
    llvm::Value* at = coordinate(place[dim], dim, tap);
    llvm::Value* next = builder_.CreateNSWAdd(builder_.CreateNSWMul(pixel, input_[dim]), at);
    llvm::Value* is_inside = builder_.CreateICmpULT(at, input_[dim]);  // as unsigned, -1 is huge
    fill_rows(place, dim + 1, next, builder_.CreateAnd(inside, is_inside),
              builder_.CreateNSWAdd(scaffold_.times(window_row, extent), tap));
  });
}

// Vectors of pointers: for few channels, computing them one by one took as long as the products.
void DepthwiseKernel::fill_row(llvm::Value* start, llvm::Value* pixel, llvm::Value* inside,
                               llvm::Value* slots) {
  constexpr int kLanes = kPointerLanes;
  const auto spread = [&](llvm::Value* value) { return broadcast(builder_, value, kLanes); };
  llvm::Value* element = builder_.CreateNSWAdd(builder_.CreateNSWMul(pixel, input_.back()), start);
  llvm::Value* first = scaffold_.times(element, problem_.channels());
  llvm::Value* numbers = lane_numbers(kLanes, builder_.getInt64Ty());
  llvm::Value* steps = builder_.CreateNSWMul(numbers, spread(number(problem_.channels())));
  for (int64_t i = 0; i < problem_.reach(); i += kLanes) {
    llvm::Value* at = builder_.CreateNSWAdd(spread(scaffold_.plus(start, i)), numbers);
    llvm::Value* place = builder_.CreateNSWAdd(spread(scaffold_.plus(first, i * problem_.channels())), steps);
    llvm::Value* exists =
        builder_.CreateAnd(spread(inside), builder_.CreateICmpULT(at, spread(input_.back())));
    llvm::Value* pointers =
        builder_.CreateSelect(exists, element_at(scaffold_.buffers[0], place), spread(outside()));
    builder_.CreateAlignedStore(pointers, builder_.CreateConstGEP1_64(builder_.getPtrTy(), slots, i),
                                llvm::Align(sizeof(void*)));
  }
}

void DepthwiseKernel::emit_chunk(llvm::Value* pixel, llvm::Value* pixels, llvm::Value* channel) {
  llvm::Value* end = scaffold_.smaller(scaffold_.plus(channel, kItemChannels), number(problem_.channels()));
  const int64_t width = problem_.block_channels;
  emit_loop(builder_, channel, end, width, [&](llvm::Value* block) {
    llvm::Value* columns =
        scaffold_.smaller(builder_.CreateNSWSub(number(problem_.channels()), block), number(width));
    emit_loop(builder_, number(0), columns, problem_.lanes,
              [&](llvm::Value* column) { emit_lanes(builder_.CreateNSWAdd(block, column), column); });
    epilogue_.call(builder_, scaffold_.scratch(0), pixel, pixels, block, columns);
  });
}

llvm::Value* DepthwiseKernel::existing_lanes(llvm::Value* channel) {
  if (problem_.channels() % problem_.lanes == 0) return nullptr;
  llvm::Value* left = builder_.CreateNSWSub(number(problem_.channels()), channel);
  return first_lanes(builder_, left, static_cast<int>(problem_.lanes));
}

llvm::Value* DepthwiseKernel::image_at(llvm::Value* row, int64_t place, llvm::Value* channel) {
  llvm::Value* slot = scaffold_.plus(scaffold_.times(row, problem_.table_row()), place);
  llvm::Value* element =
      builder_.CreateLoad(builder_.getPtrTy(), builder_.CreateGEP(builder_.getPtrTy(), table(), slot));
  return element_at(element, channel);
}

}  // namespace ingot::core::cpu
