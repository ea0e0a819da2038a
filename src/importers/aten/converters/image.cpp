// SPDX-License-Identifier: Apache-2.0
// Patches of images, and images sampled at positions in data.
#include <array>
#include <vector>

#include "importers/aten/converters/building.h"
#include "importers/aten/converters/converters.h"
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
  Dim count(size_t i, const Dim& size) const {
    const Dim padded = size + Dim(2 * padding[i]);
    return floor_divide(padded - Dim(dilation[i] * (kernel[i] - 1) + 1), stride[i]) + 1;
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

void sample_grid(Call& call) {
  constexpr std::array<const char*, 3> kModes{"bilinear", "nearest", "bicubic"},
      kOutside{"zeros", "border", "reflection"};  // by torch's numbers
  const auto mode = static_cast<size_t>(call.integer("interpolation_mode"));
  const auto outside = static_cast<size_t>(call.integer("padding_mode"));
  call.require(mode < kModes.size() && outside < kOutside.size(), "an unknown mode");
  const ops::GridSample sample{kModes[mode], kOutside[outside], call.flag("align_corners")};
  call.give(emit(call, ops::grid_sample, {call.tensor("input"), call.tensor("grid")}, sample));
}

constexpr Converter kImageConverters[] = {
    {"aten.grid_sampler.default", sample_grid},
    {"aten.grid_sampler_2d.default", sample_grid},
    {"aten.grid_sampler_3d.default", sample_grid},
    {"aten.im2col.default", patches, kComposed},
};

}  // namespace

std::span<const Converter> image_converters() { return kImageConverters; }

}  // namespace ingot::core::aten
