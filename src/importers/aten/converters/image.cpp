// SPDX-License-Identifier: Apache-2.0
// Patches of images, and images sampled at positions in data.
#include <array>
#include <vector>

#include "importers/aten/converters/converters.h"
#include "importers/aten/converters/terms.h"
#include "ops/axis.h"
#include "ops/concat.h"
#include "ops/grid_sample.h"

namespace ingot::core::aten {
namespace {

// Windows over the two last dims: entry 0 of each pair is of the rows.
struct Windows {
  std::vector<int64_t> kernel, dilation, padding, stride;
  explicit Windows(Call& call)
      : kernel(window_entries(call, "kernel_size", 2)),
        dilation(window_entries(call, "dilation", 2)),
        padding(window_entries(call, "padding", 2)),
        stride(window_entries(call, "stride", 2)) {}
  Dim padded(size_t i, const Dim& size) const { return size + Dim(2 * padding[i]); }
  Dim count(size_t i, const Dim& size) const {
    return floor_divide(padded(i, size) - Dim(dilation[i] * (kernel[i] - 1) + 1), stride[i]) + 1;
  }
  // [kernel, count]: the position in the padded dim of each element of each window.
  core::Value* places(Call& call, size_t i, const Dim& count) const {
    core::Value* inside = unsqueezed(call, counting(call, kernel[i], dilation[i]), 1);
    return emit(call, ops::add, {inside, counting(call, count, stride[i])});
  }
};

// [N, C, H, W] -> [N, C * kernel, windows]; an image may come without N.
void patches(Call& call) {
  const Windows windows(call);
  core::Value* x = call.tensor("self");
  const bool single = x->type.rank() == 3;
  if (single) x = unsqueezed(call, x, 0);
  call.require(x->type.rank() == 4, "an image of unexpected rank");
  const Shape shape = x->type.shape;
  const Dim rows = windows.count(0, shape[2]), columns = windows.count(1, shape[3]);
  const std::vector<Dim> around{0, 0, windows.padding[0], windows.padding[1]};
  if (windows.padding[0] > 0 || windows.padding[1] > 0)
    x = emit(call, ops::pad, {x}, ops::Pad{.low = around, .high = around});
  x = emit(call, ops::take, {x, windows.places(call, 0, rows)}, ops::Axis{2});
  x = emit(call, ops::take, {x, windows.places(call, 1, columns)}, ops::Axis{4});
  x = transposed(call, x, {0, 1, 2, 4, 3, 5});
  x = reshaped(call, x, {shape[0], shape[1] * Dim(windows.kernel[0] * windows.kernel[1]), rows * columns});
  call.give(single ? without_axes(call, x, {0}) : x);
}

// The inverse: overlapping windows are added.
void from_patches(Call& call) {
  const Windows windows(call);
  core::Value* x = call.tensor("self");
  const bool single = x->type.rank() == 2;
  if (single) x = unsqueezed(call, x, 0);
  const std::vector<Dim> size = call.dims("output_size");
  call.require(x->type.rank() == 3 && size.size() == 2, "patches or an image of unexpected rank");
  const Dim rows = windows.count(0, size[0]), columns = windows.count(1, size[1]);
  const Dim height = windows.padded(0, size[0]), width = windows.padded(1, size[1]);
  const Dim kernel = windows.kernel[0] * windows.kernel[1];
  const Dim channels = floor_divide(x->type.shape[1], kernel), images = x->type.shape[0] * channels;
  const auto spread = [&](core::Value* places, size_t i) {  // [kernel rows, kernel columns, rows, columns]
    Shape shape{1, 1, 1, 1};
    shape[i] = places->type.shape[0];
    shape[i + 2] = places->type.shape[1];
    return Term(call, reshaped(call, places, shape));
  };
  const Term row = spread(windows.places(call, 0, rows), 0),
             column = spread(windows.places(call, 1, columns), 1);
  const Term stride(call, size_scalar(call.graph(), width, DType::kI64));
  const Dim count = kernel * rows * columns;
  core::Value* places = expanded(call, reshaped(call, row * stride + column, {1, count}), {images, count});
  core::Value* sums = emit(
      call, ops::scatter_add,
      {filled(call, {images, height * width}, 0, x->type.dtype), places, reshaped(call, x, {images, count})},
      ops::Axis{1});
  core::Value* image = reshaped(call, sums, {x->type.shape[0], channels, height, width});
  image = sliced(call, image, 2, windows.padding[0], height - Dim(windows.padding[0]));
  image = sliced(call, image, 3, windows.padding[1], width - Dim(windows.padding[1]));
  call.give(single ? without_axes(call, image, {0}) : image);
}

void sample_grid(Call& call) {
  constexpr std::array<const char*, 3> kModes{"bilinear", "nearest", "bicubic"},
      kOutside{"zeros", "border", "reflection"};  // by torch's numbers
  const auto mode = static_cast<size_t>(call.integer("interpolation_mode"));
  const auto outside = static_cast<size_t>(call.integer("padding_mode"));
  call.require(mode < kModes.size() && outside < kOutside.size(), "an unknown mode");
  const ops::GridSample sample{kModes[mode], kOutside[outside], call.flag("align_corners")};
  call.give(emit(call, ops::grid_sample, {call.tensor("input"), call.tensor("grid")}, sample));
}

// Centers of the elements of a dim, or an even division from end to end, as -1 to 1.
core::Value* axis_of_grid(Call& call, const Dim& size, DType dtype) {
  if (size == Dim(1)) return filled(call, {size}, 0, dtype);
  const Term i(call, counting(call, size, 1, dtype));
  const Term extent(call, size_scalar(call.graph(), size, dtype));
  return call.flag("align_corners") ? i * 2 / (extent - 1) - 1 : (i * 2 + 1) / extent - 1;
}
void affine_grid(Call& call) {
  core::Value* theta = call.tensor("theta");
  const std::vector<Dim> size = call.dims("size");
  call.require(size.size() > 2, "a grid without dims");
  const std::vector<Dim> spatial(size.begin() + 2, size.end());
  const DType dtype = theta->type.dtype;
  std::vector<core::Value*> columns;
  Shape whole(spatial.begin(), spatial.end());
  whole.push_back(1);
  for (size_t i = spatial.size(); i-- > 0;) {  // x, the last dim, comes first
    Shape along(whole.size(), 1);
    along[i] = spatial[i];
    columns.push_back(expanded(call, reshaped(call, axis_of_grid(call, spatial[i], dtype), along), whole));
  }
  columns.push_back(filled(call, whole, 1, dtype));
  const Dim width = static_cast<int64_t>(columns.size());
  core::Value* base = concatenated(call, std::move(columns), spatial.size());
  base = reshaped(call, base, {1, product(spatial), width});
  core::Value* grid = emit(call, ops::matmul, {base, swapped(call, theta, 1, 2)});
  Shape shape{size[0]};
  shape.insert(shape.end(), spatial.begin(), spatial.end());
  shape.push_back(width - 1);
  call.give(reshaped(call, grid, shape));
}

constexpr Converter kImageConverters[] = {
    {"aten.affine_grid_generator.default", affine_grid, kComposed},
    {"aten.col2im.default", from_patches, kComposed},
    {"aten.grid_sampler.default", sample_grid},
    {"aten.grid_sampler_2d.default", sample_grid},
    {"aten.grid_sampler_3d.default", sample_grid},
    {"aten.im2col.default", patches, kComposed},
};

}  // namespace

std::span<const Converter> image_converters() { return kImageConverters; }

}  // namespace ingot::core::aten
