// SPDX-License-Identifier: Apache-2.0
// Fourier transforms along an axis: lines are gathered into blocks, one line in each lane, so that no line's
// result depends on another. An even number of reals is transformed as half as many complex numbers.
#include <algorithm>

#include "routines/fourier_block.h"
#include "routines/fourier_lines.h"
#include "routines/routines.h"
#include "support/thread_pool.h"

namespace ingot::core::routines {
namespace {

constexpr int64_t kGrainNumbers = 1 << 14;  // enough work for a thread of its own

// The lines of a tensor along an axis; of each, every `step`-th number from `first` on.
template <typename Real>
struct FourierLines {
  Real* data;
  int64_t count, extent, inner, distance, span;  // distance: between two numbers; span: of a whole line

  FourierLines(const TensorView& tensor, int64_t axis, int64_t first = 0, int64_t step = 1) {
    const AxisView view(tensor.shape, axis);
    data = reinterpret_cast<Real*>(tensor.data) + first * view.inner;
    count = view.outer * view.inner;
    extent = (view.extent - first + step - 1) / step;
    inner = view.inner;
    distance = view.inner * step;
    span = view.extent * view.inner;
  }
  Real* line(int64_t index) const { return data + index / inner * span + index % inner; }
};

// Lines first, first + 1 ...: one for each of `lanes` lanes.
struct LaneLines {
  int64_t first, lanes;
};

// Whether the lines' numbers are adjacent, and fill a vector.
template <typename Real>
bool is_run(const FourierLines<Real>& lines, const LaneLines& group) {
  constexpr int64_t kLanes = kFourierLanes<Real>;
  return group.lanes == kLanes && group.first % lines.inner + kLanes <= lines.inner;
}

// Whether each line's numbers are adjacent, and one line is there for each lane.
template <typename Real>
bool are_adjacent(const FourierLines<Real>& lines, const LaneLines& group) {
  return group.lanes == kFourierLanes<Real> && lines.inner == 1 && lines.distance == 1;
}
template <typename Real>
AdjacentLines<Real> adjacent_lines(const FourierLines<Real>& lines, const LaneLines& group) {
  return {lines.line(group.first), lines.span, lines.span};
}

// Calls each(line, lane, begin, end) for a few numbers of each lane in turn, so that they stay in the cache.
template <typename Real, typename Each>
void for_each_tile(const FourierLines<Real>& lines, const LaneLines& group, const Each& each) {
  constexpr int64_t kTile = 64 / sizeof(Real);
  for (int64_t begin = 0; begin < lines.extent; begin += kTile) {
    const int64_t end = std::min(begin + kTile, lines.extent);
    for (int64_t lane = 0; lane < group.lanes; ++lane) each(lines.line(group.first + lane), lane, begin, end);
  }
}

// Lanes without a line are set to 0.
template <typename Real>
void gather(const FourierLines<Real>& lines, const LaneLines& group, Real* block) {
  constexpr int64_t kLanes = kFourierLanes<Real>;
  const int64_t distance = lines.distance;
  if (is_run(lines, group)) return lanes_to_rows({lines.line(group.first), distance, lines.extent}, block);
  if (are_adjacent(lines, group))
    return lines_to_rows(adjacent_lines(lines, group), LaneRows<Real>::of(block));
  if (group.lanes < kLanes) std::fill_n(block, lines.extent * kLanes, Real(0));
  for_each_tile(lines, group, [&](const Real* from, int64_t lane, int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) block[k * kLanes + lane] = from[k * distance];
  });
}

template <typename Real>
void scatter(const FourierLines<Real>& lines, const LaneLines& group, Real* block, Real scale) {
  constexpr int64_t kLanes = kFourierLanes<Real>;
  const int64_t distance = lines.distance;
  if (is_run(lines, group))
    return rows_to_lanes(block, {lines.line(group.first), distance, lines.extent}, scale);
  if (are_adjacent(lines, group))
    return rows_to_lines(LaneRows<Real>::of(block), adjacent_lines(lines, group), scale);
  for_each_tile(lines, group, [&](Real* to, int64_t lane, int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) to[k * distance] = block[k * kLanes + lane] * scale;
  });
}

// Both parts of complex lines, or the two halves of the numbers of real ones.
template <typename Real>
struct LinePair {
  FourierLines<Real> re, im;

  static LinePair evens_and_odds(const TensorView& tensor, int64_t axis) {
    return {{tensor, axis, 0, 2}, {tensor, axis, 1, 2}};
  }
  // Whether the numbers of both parts are in turn in adjacent memory, the last one in `im`.
  bool take_turns(const LaneLines& group) const {
    return group.lanes == kFourierLanes<Real> && re.inner == 1 && im.data == re.data + 1 &&
           re.extent == im.extent;
  }
  void gather_into(const FourierBlock<Real>& block, const LaneLines& group) const {
    if (take_turns(group)) return lines_to_rows(adjacent_lines(re, group), LaneRows<Real>::of(block));
    gather(re, group, block.re);
    gather(im, group, block.im);
  }
  void scatter_from(const FourierBlock<Real>& block, const LaneLines& group, Real scale) const {
    if (take_turns(group)) return rows_to_lines(LaneRows<Real>::of(block), adjacent_lines(re, group), scale);
    scatter(re, group, block.re, scale);
    scatter(im, group, block.im, scale);
  }
};

template <typename Real>
FourierRoots<Real> roots_in(const TensorView& roots) {
  const auto* cosines = reinterpret_cast<const Real*>(roots.data);
  return {cosines, cosines + roots.shape[1], roots.shape[1]};
}

// Transforms of lines of roots.n numbers, with blocks of at least one number more per worker.
template <typename Real>
class Transform {
 public:
  Transform(const RoutineCall& call, const FourierRoots<Real>& roots)
      : roots_(roots),
        radices_(fourier_radices(roots.n)),
        pool_(call.pool),
        memory_(call, static_cast<size_t>(kBlocks * block_size() * (pool_ == nullptr ? 1 : pool_->threads()) +
                                          kLanes)) {}

  // Calls work(group, x, spare) for each group of the `count` lines: x is for the numbers to transform.
  template <typename Work>
  void for_each_group(int64_t count, const Work& work) const {
    auto some = [&](int64_t begin, int64_t end, int worker) {
      const auto [x, spare] = blocks_of(worker);
      for (int64_t group = begin; group < end; ++group)
        work(LaneLines{group * kLanes, std::min(kLanes, count - group * kLanes)}, x, spare);
    };
    const int64_t groups = (count + kLanes - 1) / kLanes;
    const int64_t grain = std::max<int64_t>(1, kGrainNumbers / block_size());
    if (pool_ == nullptr) return some(0, groups, 0);
    pool_->parallel_for(groups, grain, some);
  }
  // An inverse transform is a forward one with the parts exchanged.
  FourierBlock<Real> run(FourierBlock<Real> x, FourierBlock<Real> spare, bool inverse = false) const {
    if (inverse) std::swap(x.re, x.im);
    FourierBlock<Real> result = transform_block(radices_, roots_, x, spare);
    if (inverse) std::swap(result.re, result.im);
    return result;
  }

 private:
  static constexpr int64_t kLanes = kFourierLanes<Real>;
  static constexpr int64_t kBlocks = 4;

  // One number more than a line has, and 16 so that the parts of a number are not in the same set of a cache.
  int64_t block_size() const { return (roots_.n + 17) * kLanes; }
  std::pair<FourierBlock<Real>, FourierBlock<Real>> blocks_of(int worker) const {
    auto address = reinterpret_cast<uintptr_t>(memory_.items().data());
    address = (address + 31) / 32 * 32;
    Real* first = reinterpret_cast<Real*>(address) + kBlocks * block_size() * worker;
    const int64_t size = block_size();
    return {{first, first + size}, {first + 2 * size, first + 3 * size}};
  }

  FourierRoots<Real> roots_;
  std::vector<int64_t> radices_;
  ThreadPool* pool_;
  WorkingItems<Real> memory_;
};

template <typename Real>
Real scale_of(const RoutineCall& call) {
  return static_cast<Real>(attribute<double>(call, "scale"));
}

template <typename Real>
void run_complex(const RoutineCall& call, int64_t axis) {
  const Transform<Real> transform(call, roots_in<Real>(call.inputs[2]));
  const LinePair<Real> from{{call.inputs[0], axis}, {call.inputs[1], axis}};
  const LinePair<Real> to{{call.outputs[0], axis}, {call.outputs[1], axis}};
  const bool inverse = attribute<bool>(call, "inverse");
  const Real scale = scale_of<Real>(call);
  transform.for_each_group(from.re.count, [&](const LaneLines& group, auto x, auto spare) {
    from.gather_into(x, group);
    to.scatter_from(transform.run(x, spare, inverse), group, scale);
  });
}

template <typename Real>
FourierRoots<Real> half_of(const FourierRoots<Real>& roots) {
  return {roots.cosines, roots.sines, roots.n / 2, 2};
}

template <typename Real>
void run_real(const RoutineCall& call, int64_t axis) {
  const FourierRoots<Real> roots = roots_in<Real>(call.inputs[1]);
  const LinePair<Real> to{{call.outputs[0], axis}, {call.outputs[1], axis}};
  const Real scale = scale_of<Real>(call);
  if (roots.n % 2 == 0) {
    const Transform<Real> transform(call, half_of(roots));
    const auto from = LinePair<Real>::evens_and_odds(call.inputs[0], axis);
    return transform.for_each_group(to.re.count, [&](const LaneLines& group, auto x, auto spare) {
      from.gather_into(x, group);
      const FourierBlock<Real> z = transform.run(x, spare), result = z.re == x.re ? spare : x;
      finish_reals(z, roots, result);
      to.scatter_from(result, group, scale);
    });
  }
  const Transform<Real> transform(call, roots);
  const FourierLines<Real> from(call.inputs[0], axis);
  transform.for_each_group(to.re.count, [&](const LaneLines& group, auto x, auto spare) {
    gather(from, group, x.re);
    std::fill_n(x.im, roots.n * kFourierLanes<Real>, Real(0));
    to.scatter_from(transform.run(x, spare), group, scale);
  });
}

template <typename Real>
void run_inverse_real(const RoutineCall& call, int64_t axis) {
  constexpr int64_t kLanes = kFourierLanes<Real>;
  const FourierRoots<Real> roots = roots_in<Real>(call.inputs[2]);
  const LinePair<Real> from{{call.inputs[0], axis}, {call.inputs[1], axis}};
  const Real scale = scale_of<Real>(call);
  const int64_t n = roots.n;
  const auto gather_half = [&](const FourierBlock<Real>& x, const LaneLines& group) {
    from.gather_into(x, group);
    std::fill_n(x.im, kLanes, Real(0));
    if (n % 2 == 0) std::fill_n(x.im + n / 2 * kLanes, kLanes, Real(0));
  };
  if (n % 2 == 0) {
    const Transform<Real> transform(call, half_of(roots));
    const auto to = LinePair<Real>::evens_and_odds(call.outputs[0], axis);
    return transform.for_each_group(to.re.count, [&](const LaneLines& group, auto x, auto spare) {
      gather_half(spare, group);
      begin_reals(spare, roots, x);
      to.scatter_from(transform.run(x, spare, true), group, scale);
    });
  }
  const Transform<Real> transform(call, roots);
  const FourierLines<Real> to(call.outputs[0], axis);
  transform.for_each_group(to.count, [&](const LaneLines& group, auto x, auto spare) {
    gather_half(x, group);
    for (int64_t i = kLanes; i < (n / 2 + 1) * kLanes; ++i) {
      const int64_t mirrored = (n - i / kLanes) * kLanes + i % kLanes;
      x.re[mirrored] = x.re[i];
      x.im[mirrored] = -x.im[i];
    }
    scatter(to, group, transform.run(x, spare, true).re, scale);
  });
}

// All of one dtype, f32 or f64; the same shapes but for the extent along the axis.
int64_t checked_axis(const RoutineCall& call, size_t inputs, size_t outputs) {
  const auto require = [](bool fits) { require_fit(fits, "fourier"); };
  require(call.inputs.size() == inputs && call.outputs.size() == outputs);
  const int64_t axis = attribute<int64_t>(call, "axis");
  const TensorView &first = call.inputs[0], &roots = call.inputs.back();
  require(axis >= 0 && axis < static_cast<int64_t>(first.shape.size()));
  require(first.dtype == DType::kF32 || first.dtype == DType::kF64);
  require(roots.dtype == first.dtype && roots.shape.size() == 2 && roots.shape[0] == 2 && roots.shape[1] > 0);
  const auto at = static_cast<size_t>(axis);
  const auto require_shape = [&](const TensorView& view, int64_t extent) {
    std::vector<int64_t> expected = first.shape;
    expected[at] = extent;
    require(view.dtype == first.dtype && view.shape == expected);
  };
  const int64_t n = roots.shape[1], half = n / 2 + 1;
  const bool is_real_input = inputs == 2, is_real_output = outputs == 1;
  for (size_t i = 0; i + 1 < inputs; ++i) require_shape(call.inputs[i], is_real_output ? half : n);
  for (const TensorView& output : call.outputs) require_shape(output, is_real_input ? half : n);
  return axis;
}

template <typename Function>
void for_dtype(const RoutineCall& call, const Function& run) {
  call.inputs[0].dtype == DType::kF32 ? run(float{}) : run(double{});
}

}  // namespace

void fourier(const RoutineCall& call) {
  const int64_t axis = checked_axis(call, 3, 2);
  for_dtype(call, [&]<typename Real>(Real) { run_complex<Real>(call, axis); });
}

void real_fourier(const RoutineCall& call) {
  const int64_t axis = checked_axis(call, 2, 2);
  for_dtype(call, [&]<typename Real>(Real) { run_real<Real>(call, axis); });
}

void inverse_real_fourier(const RoutineCall& call) {
  const int64_t axis = checked_axis(call, 3, 1);
  for_dtype(call, [&]<typename Real>(Real) { run_inverse_real<Real>(call, axis); });
}

}  // namespace ingot::core::routines
