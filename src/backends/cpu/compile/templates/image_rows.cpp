// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/templates/image_rows.h"
#include "ops/convolution.h"

#include <algorithm>
#include <numeric>
#include <optional>

namespace ingot::core::cpu {

namespace {

using Values = std::vector<llvm::Value*>;

// With fewer channels, a single tap would be too short a run for the microkernel's loop.
constexpr int64_t kFewChannels = 32;

int64_t taps(const ImageGeometry& geometry, size_t dims) {
  int64_t count = 1;
  for (size_t dim = 0; dim < dims; ++dim) count *= geometry.window[dim];
  return count;
}

// Emits the pointers of one tile.
class RowFiller {
 public:
  RowFiller(const RowRequest& request, const ImageGeometry& geometry, int tile_rows)
      : request_(request), geometry_(geometry), builder_(request.builder), tile_rows_(tile_rows) {
    for (const Dim& dim : geometry.input) input_.push_back(request.dims.emit(dim));
    for (const Dim& dim : geometry.output) output_.push_back(request.dims.emit(dim));
  }

  // Image and pixel of the first row by division. The other rows are lanes of vectors where lines of pixels
  // are as long as tiles, so that at most one row begins a line; otherwise they are counted one by one.
  void fill() {
    const std::optional<int64_t> width = geometry_.output.back().constant();
    if (geometry_.whole_window_rows || (width && *width < tile_rows_)) return fill_one_by_one();
    if (width) return fill_together();
    llvm::Value* fits = builder_.CreateICmpUGE(output_.back(), number(tile_rows_));
    emit_if(builder_, fits, [&] { fill_together(); }, [&] { fill_one_by_one(); });
  }

 private:
  size_t rank() const { return geometry_.input.size(); }
  llvm::Value* number(int64_t value) { return builder_.getInt64(value); }
  llvm::Value* times(llvm::Value* a, int64_t b) {
    return builder_.CreateNSWMul(a, llvm::ConstantInt::getSigned(a->getType(), b));
  }
  // For all rows.
  llvm::Value* spread(llvm::Value* value) {
    return together_ ? builder_.CreateVectorSplat(static_cast<unsigned>(tile_rows_), value) : value;
  }

  Values first_pixel() {
    Values pixel(rank());
    llvm::Value* rest = request_.row;
    for (size_t dim = rank(); dim-- > 0;) {
      pixel[dim] = builder_.CreateURem(rest, output_[dim]);
      rest = builder_.CreateUDiv(rest, output_[dim]);
    }
    pixel.insert(pixel.begin(), rest);
    return pixel;
  }

  void fill_one_by_one() {
    emit_carrying_loop(builder_, number(0), number(tile_rows_), 1, first_pixel(),
                       [&](llvm::Value* row, std::span<llvm::Value* const> place) {
                         fill_row(row, place);
                         llvm::Value* last = builder_.CreateNSWSub(request_.rows, number(1));
                         llvm::Value* step = builder_.CreateICmpSLT(row, last);
                         return advance(place, builder_.CreateZExt(step, builder_.getInt64Ty()));
                       });
  }

  void fill_together() {
    together_ = true;
    Values place = first_pixel();
    for (llvm::Value*& index : place) index = spread(index);
    std::vector<uint64_t> rows(static_cast<size_t>(tile_rows_));
    std::iota(rows.begin(), rows.end(), 0);
    llvm::Value* last = spread(builder_.CreateNSWSub(request_.rows, number(1)));
    llvm::Value* row = builder_.CreateBinaryIntrinsic(
        llvm::Intrinsic::umin, llvm::ConstantDataVector::get(builder_.getContext(), rows), last);
    fill_row(number(0), advance(place, row));
    together_ = false;
  }

  // By less than a line of pixels. Missing rows repeat the last one.
  Values advance(std::span<llvm::Value* const> place, llvm::Value* carry) {
    Values next(place.begin(), place.end());
    for (size_t dim = rank(); dim-- > 0;) {
      llvm::Value *up = builder_.CreateNSWAdd(next[dim + 1], carry), *size = spread(output_[dim]);
      llvm::Value* over = builder_.CreateICmpUGE(up, size);
      next[dim + 1] = builder_.CreateSelect(over, builder_.CreateNSWSub(up, size), up);
      carry = builder_.CreateZExt(over, up->getType());
    }
    next[0] = builder_.CreateNSWAdd(next[0], carry);
    return next;
  }

  // Coordinate in the image of tap `tap` along `dim`.
  llvm::Value* coordinate(std::span<llvm::Value* const> place, size_t dim, llvm::Value* tap) {
    llvm::Value* first = builder_.CreateNSWSub(times(place[dim + 1], geometry_.stride[dim]),
                                               spread(number(geometry_.padding[dim])));
    return builder_.CreateNSWAdd(first, spread(times(tap, geometry_.dilation[dim])));
  }
  llvm::Value* is_inside(llvm::Value* coordinate, size_t dim) {
    return builder_.CreateICmpULT(coordinate, spread(input_[dim]));  // negative ones are huge as unsigned
  }

  void fill_row(llvm::Value* row, std::span<llvm::Value* const> place) {
    fill_taps(row, place, 0, place[0], spread(builder_.getTrue()), number(0));
  }

  // Recurses over the spatial dims: `pixel` is the index so far in the flattened image, `segment` that of the
  // window's tap.
  void fill_taps(llvm::Value* row, std::span<llvm::Value* const> place, size_t dim, llvm::Value* pixel,
                 llvm::Value* inside, llvm::Value* segment) {
    bool last = dim + 1 == rank();
    if (last && geometry_.whole_window_rows) return store_window_row(row, place, pixel, inside, segment);
    llvm::Value* line = builder_.CreateNSWMul(pixel, spread(input_[dim]));
    llvm::Value* first =
        last ? channels_of(builder_.CreateNSWAdd(line, coordinate(place, dim, number(0)))) : nullptr;
    emit_loop(builder_, number(0), number(geometry_.window[dim]), 1, [&](llvm::Value* tap) {
      llvm::Value* at = coordinate(place, dim, tap);
      llvm::Value* next_inside = builder_.CreateAnd(inside, is_inside(at, dim));
      llvm::Value* next_segment = builder_.CreateNSWAdd(times(segment, geometry_.window[dim]), tap);
      if (!last)
        return fill_taps(row, place, dim + 1, builder_.CreateNSWAdd(line, at), next_inside, next_segment);
      llvm::Value* behind = spread(times(tap, geometry_.dilation[dim] * geometry_.channels));
      llvm::Value* pointer = builder_.CreateGEP(request_.element, first, behind);
      if (geometry_.is_padded())
        pointer = builder_.CreateSelect(next_inside, pointer, spread(request_.extra));
      store(row, next_segment, pointer);
    });
  }

  llvm::Value* channels_of(llvm::Value* pixel) {
    llvm::Value* channel = times(request_.group, geometry_.group_channels);
    llvm::Value* place = builder_.CreateNSWAdd(times(pixel, geometry_.channels), spread(channel));
    return builder_.CreateGEP(request_.element, request_.buffers[0], place);
  }

  void store(llvm::Value* row, llvm::Value* segment, llvm::Value* pointer) {
    llvm::Value* slot = builder_.CreateNSWAdd(times(segment, tile_rows_), row);
    llvm::Value* to = builder_.CreateGEP(builder_.getPtrTy(), request_.table, slot);
    builder_.CreateAlignedStore(pointer, to, llvm::Align(sizeof(void*)));
  }

  // One row of the window is contiguous. Where it leaves the image, a padded copy replaces it.
  void store_window_row(llvm::Value* row, std::span<llvm::Value* const> place, llvm::Value* pixel,
                        llvm::Value* inside, llvm::Value* segment) {
    size_t dim = rank() - 1;
    llvm::Value* first = coordinate(place, dim, number(0));
    llvm::Value* pointer =
        channels_of(builder_.CreateNSWAdd(builder_.CreateNSWMul(pixel, input_[dim]), first));
    store(row, segment, pointer);
    if (!geometry_.is_padded()) return;
    llvm::Value* past = coordinate(place, dim, number(geometry_.window[dim] - 1));
    llvm::Value* whole =
        builder_.CreateAnd(inside, builder_.CreateAnd(is_inside(first, dim), is_inside(past, dim)));
    emit_if(builder_, builder_.CreateNot(whole), [&] {
      llvm::Value* slot = builder_.CreateNSWAdd(times(segment, tile_rows_), row);
      llvm::Value* copy =
          builder_.CreateGEP(request_.element, request_.extra, times(slot, geometry_.count()));
      copy_window_row(copy, pointer, first, inside);
      store(row, segment, copy);
    });
  }

  void copy_window_row(llvm::Value* copy, llvm::Value* from, llvm::Value* first, llvm::Value* inside) {
    size_t dim = rank() - 1;
    llvm::Type* type = request_.element;
    emit_loop(builder_, number(0), number(geometry_.window[dim]), 1, [&](llvm::Value* tap) {
      llvm::Value* exists = builder_.CreateAnd(inside, is_inside(builder_.CreateNSWAdd(first, tap), dim));
      llvm::Value* begin = times(tap, geometry_.channels);
      auto place = [&](llvm::Value* base, llvm::Value* channel) {
        return builder_.CreateGEP(type, base, builder_.CreateNSWAdd(begin, channel));
      };
      llvm::Value* beyond = type->isIntegerTy() && geometry_.outside != 0
                                ? llvm::ConstantInt::get(type, static_cast<uint64_t>(geometry_.outside))
                                : llvm::Constant::getNullValue(type);
      auto copy_channels = [&](bool is_inside) {
        emit_loop(builder_, number(0), number(geometry_.channels), 1, [&](llvm::Value* channel) {
          llvm::Value* value =
              is_inside ? static_cast<llvm::Value*>(builder_.CreateLoad(type, place(from, channel))) : beyond;
          builder_.CreateStore(value, place(copy, channel));
        });
      };
      emit_if(builder_, exists, [&] { copy_channels(true); }, [&] { copy_channels(false); });
    });
  }

  const RowRequest& request_;
  const ImageGeometry& geometry_;
  Builder& builder_;
  int tile_rows_;
  bool together_ = false;  // values are vectors of all rows
  Values input_, output_;
};

}  // namespace

bool ImageGeometry::is_padded() const {
  return std::any_of(padding.begin(), padding.end(), [](int64_t size) { return size != 0; });
}

bool all_one(const std::vector<int64_t>& sizes) {
  return std::ranges::all_of(sizes, [](int64_t size) { return size == 1; });
}

bool ImageGeometry::is_plain() const { return all_one(window) && all_one(stride) && !is_padded(); }

int64_t ImageGeometry::segments() const { return taps(*this, window.size() - (whole_window_rows ? 1 : 0)); }

int64_t ImageGeometry::count() const { return group_channels * (whole_window_rows ? window.back() : 1); }

int64_t ImageGeometry::extra_bytes(int tile_rows) const {
  if (!is_padded()) return 0;
  return row_bytes(dtype, whole_window_rows ? segments() * tile_rows * count() : group_channels);
}

ImageGeometry image_geometry(std::span<const TensorType> operands, const TensorType& result,
                             const ops::Convolution& attributes) {
  ImageGeometry geometry;
  geometry.input.assign(operands[0].shape.begin() + 2, operands[0].shape.end());
  geometry.output.assign(result.shape.begin() + 2, result.shape.end());
  for (size_t dim = 2; dim < operands[1].rank(); ++dim)
    geometry.window.push_back(*operands[1].shape[dim].constant());
  geometry.stride = attributes.stride;
  geometry.padding = attributes.padding;
  geometry.dilation = attributes.dilation;
  geometry.channels = *operands[0].shape[1].constant();
  geometry.group_channels = *operands[1].shape[1].constant();
  geometry.dtype = operands[0].dtype;
  geometry.whole_window_rows = attributes.groups == 1 && geometry.channels < kFewChannels &&
                               geometry.window.back() > 1 && geometry.dilation.back() == 1;
  return geometry;
}

void begin_image_rows(const RowRequest& request, const ImageGeometry& geometry, int tile_rows) {
  if (!geometry.is_padded() || geometry.whole_window_rows) return;
  Builder& builder = request.builder;
  emit_loop(builder, builder.getInt64(0), builder.getInt64(geometry.extra_bytes(tile_rows)), 1,
            [&](llvm::Value* i) {
              builder.CreateStore(builder.getInt8(static_cast<uint8_t>(geometry.outside)),
                                  builder.CreateGEP(builder.getInt8Ty(), request.extra, i));
            });
}

void fill_image_rows(const RowRequest& request, const ImageGeometry& geometry, int tile_rows) {
  RowFiller(request, geometry, tile_rows).fill();
}

}  // namespace ingot::core::cpu
