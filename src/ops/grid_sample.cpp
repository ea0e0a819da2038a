// SPDX-License-Identifier: Apache-2.0
// An image or a volume [N, C, *spatial], sampled at the positions of a grid [N, *positions, spatial dims].
// Coordinates are -1 to 1 and count from the last dim: x, y, z.
#include <algorithm>
#include <array>

#include "ops/grid_sample.h"
#include "ops/infer.h"
#include "ops/lowering.h"
#include "ops/ops.h"
#include "ops/samples.h"

namespace ingot::core::ops {
namespace {

constexpr Operand kGridOperands[] = {{"x", DTypeSet::kFloating}, {"grid", DTypeSet::kFloating}};

bool is_volume(const Shape& x) { return x.size() == 5; }
bool is_one_of(const std::string& word, std::initializer_list<const char*> words) {
  return std::ranges::find(words, word) != words.end();
}
Types infer_grid_sample(const Node& node) {
  const auto sample = node.attributes<GridSample>();
  require(is_one_of(sample.mode, {"bilinear", "nearest", "bicubic"}), node,
          "the mode must be bilinear, nearest or bicubic");
  require(is_one_of(sample.outside, {"zeros", "border", "reflection"}), node,
          "outside must be zeros, border or reflection");
  require_same_dtype(node);
  const Shape &x = node.operand_type(0).shape, &grid = node.operand_type(1).shape;
  require(x.size() == 4 || (is_volume(x) && sample.mode != "bicubic"), node,
          "x must be [N, C, *spatial] with two spatial dims, or three unless bicubic");
  require(grid.size() == x.size() && grid[0] == x[0] && grid.back() == Dim(x.size() - 2), node,
          "the grid must be [N, *positions, spatial dims of x]");
  for (size_t i = 2; i < x.size(); ++i) require(x[i] != Dim(0), node, "an empty dim cannot be sampled");
  Shape shape{x[0], x[1]};
  shape.insert(shape.end(), grid.begin() + 1, grid.end() - 1);
  return {{node.operand_type(0).dtype, std::move(shape), {}}};
}

// An element's place along one dim, whether it is inside the image, and its weight there.
struct Tap {
  Dim at;
  Expr is_inside, weight;
};

class Sampler {
 public:
  Sampler(const Node& node, KernelBuilder& kernel, const Index& index)
      : sample_(node.attributes<GridSample>()),
        shape_(node.operand_type(0).shape),
        kernel_(kernel),
        index_(index) {}

  std::vector<Tap> taps(size_t dim) {
    const Expr at = position(dim);
    if (sample_.mode == "nearest") return {tap(dim, compute(loops::Unary::kRoundEven, bounded(at, dim)))};
    if (sample_.mode == "bicubic") return cubic_taps(dim, at);
    const Expr place = bounded(at, dim), low = compute(loops::Unary::kFloor, place);
    return {tap(dim, low, 1.0 - (place - low)), tap(dim, low + 1.0, place - low)};
  }

 private:
  Expr extent(size_t dim) const { return size_value(kernel_.dtype(1), shape_[dim]); }

  Expr position(size_t dim) const {
    Index place{index_[0]};
    place.insert(place.end(), index_.begin() + 2, index_.end());
    place.emplace_back(shape_.size() - 1 - dim);
    const Expr at = kernel_.load(1, place), size = extent(dim);
    return sample_.align_corners ? (at + 1.0) * 0.5 * (size - 1.0) : ((at + 1.0) * size - 1.0) * 0.5;
  }
  // Moved into the image, unless elements outside of it are zeros. As in torch, NaN is moved to the first
  // element of an image, and to the last of a volume.
  Expr bounded(Expr at, size_t dim) const {
    if (sample_.outside == "zeros") return at;
    if (sample_.outside == "reflection") at = reflected(at, dim);
    const Expr first = number(at, 0), last = extent(dim) - 1.0;
    if (is_volume(shape_)) return larger(loops::select(below(at, last), at, last), first);
    return smaller(loops::select(above(at, first), at, first), last);
  }
  // At the centers of the outermost elements, or at their outer edges.
  Expr reflected(const Expr& at, size_t dim) const {
    const Expr span = sample_.align_corners ? extent(dim) - 1.0 : extent(dim);
    const double low = sample_.align_corners ? 0 : -0.5;
    const Expr distance = compute(loops::Unary::kAbsolute, at - low);
    const Expr turns = compute(loops::Unary::kFloor, distance / span), rest = distance - turns * span;
    const Expr half = compute(loops::Unary::kFloor, turns * 0.5) * 2.0;
    const Expr result = loops::select(equal_to(turns, half), rest + low, span - rest + low);
    return loops::select(equal_to(span, number(span, 0)), number(at, 0), result);
  }
  Tap tap(size_t dim, const Expr& at, Expr weight = nullptr) {
    const Expr first = number(at, 0);
    const Expr is_inside = both(at_least(at, first), below(at, extent(dim)));
    const Expr place = whole_position(loops::select(is_inside, at, first), shape_[dim]);
    const Expr last = loops::index_value(shape_[dim] - 1);  // a large extent may be rounded up
    return {kernel_.bind(smaller(place, last), shape_[dim]), is_inside, std::move(weight)};
  }
  // The neighbours at -1, 0, 1 and 2, each moved into the image by itself.
  std::vector<Tap> cubic_taps(size_t dim, const Expr& at) {
    constexpr double a = -0.75;
    const Expr low = compute(loops::Unary::kFloor, at), t = at - low;
    const auto near = [&](const Expr& x) { return (x * (a + 2) - (a + 3)) * x * x + 1.0; };
    const auto far = [&](const Expr& x) { return ((x * a - 5 * a) * x + 8 * a) * x - 4 * a; };
    const std::array<Expr, 4> weights{far(t + 1.0), near(t), near(1.0 - t), far(2.0 - t)};
    std::vector<Tap> taps;
    for (size_t i = 0; i < weights.size(); ++i)
      taps.push_back(tap(dim, bounded(low + (static_cast<double>(i) - 1), dim), weights[i]));
    return taps;
  }

  const GridSample sample_;
  const Shape& shape_;
  KernelBuilder& kernel_;
  const Index& index_;
};

// An element outside of an image is 0 times its weight, which may be NaN; outside of a volume it is left out.
Expr weighted(const Expr& element, const Expr& is_inside, const Expr& weight, bool is_left_out) {
  const Expr zero = number(element, 0);
  if (!weight) return loops::select(is_inside, element, zero);
  if (is_left_out) return loops::select(is_inside, element * weight, zero);
  return loops::select(is_inside, element, zero) * weight;
}

// sum over the taps of all dims:  inside ? x[n, c, taps] : 0  *  product of the taps' weights
loops::Kernel lower_grid_sample(const Node& node) {
  KernelBuilder kernel(node);
  const Index index = kernel.parallel(node.results[0]->type.shape);
  Sampler sampler(node, kernel, index);
  std::vector<std::vector<Tap>> taps;
  size_t count = 1;
  for (size_t dim = 2; dim < index.size(); ++dim) {
    taps.push_back(sampler.taps(dim));
    count *= taps.back().size();
  }
  Expr total;
  for (size_t i = 0; i < count; ++i) {
    Index at{index[0], index[1]};
    Expr is_inside = boolean(true), weight;
    size_t rest = i;
    for (const std::vector<Tap>& choices : taps) {
      const Tap& tap = choices[rest % choices.size()];
      rest /= choices.size();
      at.push_back(tap.at);
      is_inside = both(is_inside, tap.is_inside);
      if (tap.weight) weight = weight ? weight * tap.weight : tap.weight;
    }
    const Expr part = weighted(kernel.load(0, at), is_inside, weight, is_volume(node.operand_type(0).shape));
    total = total ? total + part : part;
  }
  kernel.store(index, total);
  return kernel.finish();
}

Samples grid_sample_samples() {
  return {
      sample({f32({batch(), 2, 3, 4}), f32({batch(), 5, 2, 2}, -1.2, 1.2)},
             GridSample{"bilinear", "zeros", false}),
      sample({f32({1, 3, length(), 4}), f32({1, 2, 3, 2}, -3, 3)}, GridSample{"bilinear", "border", true}),
      sample({f32({1, 2, 5, 4}), f32({1, 2, 3, 2}, -3, 3)}, GridSample{"bicubic", "reflection", false}),
      sample({f32({1, 2, 3, 4, 2}), f32({1, 2, 3, 2, 3}, -3, 3)}, GridSample{"bilinear", "reflection", true}),
      sample({f32({1, 2, 3, 4, 5}), f32({1, 2, 3, 2, 3}, -1.2, 1.2)}, GridSample{"nearest", "zeros", false})};
}

}  // namespace

constinit const Op grid_sample = {
    .name = "grid_sample",
    .summary = "x at the positions of a grid, between its neighbours or the nearest of them",
    .operands = kGridOperands,
    .attributes = attribute_schema<GridSample>(),
    .infer = infer_grid_sample,
    .lower = lower_grid_sample,
    .samples = grid_sample_samples};

}  // namespace ingot::core::ops
