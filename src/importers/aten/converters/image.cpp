// SPDX-License-Identifier: Apache-2.0
// Patches of images, and images sampled at positions in data.
#include <array>
#include <span>
#include <vector>

#include "importers/aten/converters/converters.h"
#include "importers/aten/converters/terms.h"

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

enum Interpolation : int64_t { kBilinear, kNearest, kBicubic };
enum Outside : int64_t { kZeros, kBorder, kReflection };

// For an image or a volume. Dims count from the last one: 0 is x, 1 is y, 2 is z, as in the grid.
class Sampler {
 public:
  explicit Sampler(Call& call)
      : call_(call),
        image_(call.tensor("input")),
        grid_(call.tensor("grid")),
        outside_(static_cast<Outside>(call.integer("padding_mode"))),
        align_(call.flag("align_corners")) {
    const size_t rank = image_->type.rank();
    call.require((rank == 4 || rank == 5) && grid_->type.rank() == rank,
                 "an image or a grid of unexpected rank");
    const Shape& shape = image_->type.shape;
    const std::span size(shape.begin() + 2, shape.end());
    flat_ = reshaped(call, image_, {shape[0], shape[1], product(size)});
    count_ = product(std::span(grid_->type.shape).subspan(1, size.size()));
  }
  size_t dims() const { return image_->type.rank() - 2; }

  // One coordinate of the grid as positions in its dim: [N, 1, positions].
  Term place(size_t dim) {
    core::Value* one = selected(call_, grid_, dims() + 1, static_cast<int64_t>(dim));
    const Term at(call_, reshaped(call_, one, {grid_->type.shape[0], 1, count_}));
    const Term size = extent(dim);
    return align_ ? (at + 1) * 0.5 * (size - 1) : ((at + 1) * size - 1) * 0.5;
  }
  // Moved into the image according to the padding mode.
  Term bounded(Term at, size_t dim) {
    if (outside_ == kZeros) return at;
    if (outside_ == kReflection) at = reflected(at, dim);
    return at.apply(ops::maximum, 0).apply(ops::minimum, extent(dim) - 1);
  }
  // The elements at integer positions, x first, times their weight; zero outside of the image.
  Term sample(const std::vector<Term>& at, const Term& weight) {
    Term inside = is_inside(at[0], 0);
    for (size_t dim = 1; dim < at.size(); ++dim) inside = inside && is_inside(at[dim], dim);
    const auto whole = [&](size_t dim) {
      return inside.choose(at[dim], at[dim].constant(0)).to(DType::kI64);
    };
    Term index = whole(at.size() - 1);
    for (size_t dim = at.size() - 1; dim-- > 0;) index = index * extent(dim, DType::kI64) + whole(dim);
    const Shape& shape = flat_->type.shape;
    core::Value* everywhere = expanded(call_, index, {shape[0], shape[1], count_});
    const Term value(call_, emit(call_, ops::gather, {flat_, everywhere}, ops::Axis{2}));
    return inside.choose(value * weight, value.constant(0));
  }
  void give(const Term& samples) {
    Shape shape = grid_->type.shape;
    shape.pop_back();
    shape.insert(shape.begin() + 1, image_->type.shape[1]);
    call_.give(reshaped(call_, samples, shape));
  }

 private:
  Term extent(size_t dim, DType dtype) {
    return {call_, size_scalar(call_.graph(), image_->type.shape[image_->type.rank() - 1 - dim], dtype)};
  }
  Term extent(size_t dim) { return extent(dim, grid_->type.dtype); }
  Term is_inside(const Term& at, size_t dim) {
    return Term(call_, emit(call_, ops::greater_equal, {at, at.constant(0)})) && at < extent(dim);
  }
  // Reflects around the centers of the outermost elements, or around their outer edges.
  Term reflected(const Term& at, size_t dim) {
    const Term span = align_ ? extent(dim) - 1 : extent(dim);
    const double low = align_ ? 0 : -0.5;
    const Term distance = (at - low).apply(ops::absolute);
    const Term turns = (distance / span).apply(ops::floor), rest = distance - turns * span;
    const Term is_even = equal(turns - (turns * 0.5).apply(ops::floor) * 2, 0);
    const Term result = is_even.choose(rest + low, span - rest + low);
    return equal(span, 0).choose(result.constant(0), result);
  }

  Call& call_;
  core::Value *image_, *grid_, *flat_ = nullptr;
  Dim count_;
  Outside outside_;
  bool align_;
};

Term sum_of(const std::vector<Term>& parts) {
  Term total = parts[0];
  for (size_t i = 1; i < parts.size(); ++i) total = total + parts[i];
  return total;
}

// Weights of the neighbours at -1, 0, 1, 2 for a position `t` after neighbour 0.
std::array<Term, 4> cubic_weights(const Term& t) {
  constexpr double a = -0.75;
  const auto near = [&](const Term& x) { return (x * (a + 2) - (a + 3)) * x * x + 1; };
  const auto far = [&](const Term& x) { return ((x * a - 5 * a) * x + 8 * a) * x - 4 * a; };
  return {far(t + 1), near(t), near(1 - t), far(2 - t)};
}
void sample_cubic(Sampler& sampler) {
  const Term x = sampler.place(0), y = sampler.place(1);
  const Term left = x.apply(ops::floor), top = y.apply(ops::floor);
  const std::array<Term, 4> across = cubic_weights(x - left), down = cubic_weights(y - top);
  std::vector<Term> parts;
  for (size_t i = 0; i < 4; ++i) {
    for (size_t j = 0; j < 4; ++j) {
      const Term row = sampler.bounded(top + (static_cast<double>(i) - 1), 1),
                 column = sampler.bounded(left + (static_cast<double>(j) - 1), 0);
      parts.push_back(sampler.sample({column, row}, down[i] * across[j]));
    }
  }
  sampler.give(sum_of(parts));
}
// Two neighbours per dim: bit i of a corner selects the one of dim i.
void sample_linear(Sampler& sampler) {
  std::vector<Term> low, beyond;
  for (size_t dim = 0; dim < sampler.dims(); ++dim) {
    const Term at = sampler.bounded(sampler.place(dim), dim);
    low.push_back(at.apply(ops::floor));
    beyond.push_back(at - low.back());
  }
  std::vector<Term> parts;
  for (size_t corner = 0; corner < size_t{1} << sampler.dims(); ++corner) {
    std::vector<Term> places;
    Term weight = low[0].constant(1);
    for (size_t dim = 0; dim < sampler.dims(); ++dim) {
      const bool high = (corner >> dim & 1) != 0;
      places.push_back(high ? low[dim] + 1 : low[dim]);
      weight = weight * (high ? beyond[dim] : 1 - beyond[dim]);
    }
    parts.push_back(sampler.sample(places, weight));
  }
  sampler.give(sum_of(parts));
}
void sample_nearest(Sampler& sampler) {
  std::vector<Term> places;
  for (size_t dim = 0; dim < sampler.dims(); ++dim)
    places.push_back(sampler.bounded(sampler.place(dim), dim).apply(ops::round));
  sampler.give(sampler.sample(places, places[0].constant(1)));
}
void sample_grid(Call& call) {
  Sampler sampler(call);
  const auto mode = static_cast<Interpolation>(call.integer("interpolation_mode"));
  if (mode == kBilinear) return sample_linear(sampler);
  if (mode == kNearest) return sample_nearest(sampler);
  call.require(sampler.dims() == 2, "cubic interpolation of volumes");
  sample_cubic(sampler);
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
