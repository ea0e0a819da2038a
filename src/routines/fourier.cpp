// SPDX-License-Identifier: Apache-2.0
// Fourier transforms along an axis: lines are gathered into blocks, one line in each lane, or two lines of
// reals, as one is the real and one the imaginary part of a line that is transformed.
#include <algorithm>

#include "routines/fourier_block.h"
#include "routines/routines.h"
#include "support/thread_pool.h"

namespace ingot::core::routines {
namespace {

constexpr int64_t kGrainNumbers = 1 << 14;  // enough work for a thread of its own

// The lines of a tensor along an axis.
template <typename Real>
struct FourierLines {
  Real* data;
  AxisView view;

  FourierLines(const TensorView& tensor, int64_t axis)
      : data(reinterpret_cast<Real*>(tensor.data)), view(tensor.shape, axis) {}
  int64_t count() const { return view.outer * view.inner; }
  Real* line(int64_t index) const {
    return data + index / view.inner * view.extent * view.inner + index % view.inner;
  }
};

// FourierLines first, first + step ...: one for each of `lanes` lanes. Other lanes are set to 0, or not
// written.
struct LaneLines {
  int64_t first, step, lanes;
};

template <typename Real>
LaneLines choose(const FourierLines<Real>& lines, int64_t first, int64_t step, int64_t offset) {
  const int64_t left = (lines.count() - first - offset + step - 1) / step;
  return {first + offset, step, std::clamp<int64_t>(left, 0, kFourierLanes<Real>)};
}

// Calls each(line, lane, begin, end) for a few numbers of each lane in turn, so that they stay in the cache.
template <typename Real, typename Each>
void for_each_tile(const FourierLines<Real>& lines, const LaneLines& choice, const Each& each) {
  constexpr int64_t kTile = 64 / sizeof(Real);
  const int64_t extent = lines.view.extent;
  for (int64_t begin = 0; begin < extent; begin += kTile) {
    const int64_t end = std::min(begin + kTile, extent);
    for (int64_t lane = 0; lane < choice.lanes; ++lane)
      each(lines.line(choice.first + lane * choice.step), lane, begin, end);
  }
}

template <typename Real>
void gather(const FourierLines<Real>& lines, const LaneLines& choice, Real* block) {
  constexpr int64_t kLanes = kFourierLanes<Real>;
  const auto [outer, extent, inner] = lines.view;
  const bool is_run = choice.step == 1 && choice.lanes == kLanes && choice.first % inner + kLanes <= inner;
  if (is_run) {
    const Real* from = lines.line(choice.first);
    for (int64_t k = 0; k < extent; ++k) std::copy_n(from + k * inner, kLanes, block + k * kLanes);
    return;
  }
  if (choice.lanes < kLanes) std::fill_n(block, extent * kLanes, Real(0));
  for_each_tile(lines, choice, [&](const Real* from, int64_t lane, int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) block[k * kLanes + lane] = from[k * inner];
  });
}

template <typename Real>
void scatter(const FourierLines<Real>& lines, const LaneLines& choice, const Real* block, Real scale) {
  constexpr int64_t kLanes = kFourierLanes<Real>;
  const auto [outer, extent, inner] = lines.view;
  const bool is_run = choice.step == 1 && choice.lanes == kLanes && choice.first % inner + kLanes <= inner;
  if (is_run) {
    Real* to = lines.line(choice.first);
    for (int64_t k = 0; k < extent; ++k) {
      for (int64_t lane = 0; lane < kLanes; ++lane) to[k * inner + lane] = block[k * kLanes + lane] * scale;
    }
    return;
  }
  for_each_tile(lines, choice, [&](Real* to, int64_t lane, int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) to[k * inner] = block[k * kLanes + lane] * scale;
  });
}

// What the three transforms share: the roots, and blocks for each worker.
template <typename Real>
class Transform {
 public:
  static constexpr int64_t kLanes = kFourierLanes<Real>;

  Transform(const RoutineCall& call, const TensorView& roots)
      : roots_{reinterpret_cast<const Real*>(roots.data),
               reinterpret_cast<const Real*>(roots.data) + roots.shape[1], roots.shape[1]},
        radices_(fourier_radices(roots_.n)),
        pool_(call.pool),
        memory_(call, static_cast<size_t>(kBlocks * block_size() * (pool_ == nullptr ? 1 : pool_->threads()) +
                                          kLanes)) {}

  int64_t n() const { return roots_.n; }

  // Calls work(first, x, spare) for each group of `lines` lines, `count` in all: x is for the numbers to
  // transform, by `run`.
  template <typename Work>
  void for_each_group(int64_t count, int64_t lines, const Work& work) const {
    auto some = [&](int64_t begin, int64_t end, int worker) {
      const auto [x, spare] = blocks_of(worker);
      for (int64_t group = begin; group < end; ++group) work(group * lines, x, spare);
    };
    const int64_t groups = (count + lines - 1) / lines;
    const int64_t grain = std::max<int64_t>(1, kGrainNumbers / std::max<int64_t>(1, block_size()));
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
  static constexpr int64_t kBlocks = 4;

  // Two blocks also have room for two halves of spectra.
  int64_t block_size() const { return (roots_.n + 2) * kLanes; }
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
void run_complex(const RoutineCall& call, int64_t axis) {
  const Transform<Real> transform(call, call.inputs[2]);
  const FourierLines<Real> from_re(call.inputs[0], axis), from_im(call.inputs[1], axis);
  const FourierLines<Real> to_re(call.outputs[0], axis), to_im(call.outputs[1], axis);
  const bool inverse = attribute<bool>(call, "inverse");
  const auto scale = static_cast<Real>(attribute<double>(call, "scale"));
  transform.for_each_group(from_re.count(), transform.kLanes, [&](int64_t first, auto x, auto spare) {
    const LaneLines lines = choose(from_re, first, 1, 0);
    gather(from_re, lines, x.re);
    gather(from_im, lines, x.im);
    const FourierBlock<Real> y = transform.run(x, spare, inverse);
    scatter(to_re, lines, y.re, scale);
    scatter(to_im, lines, y.im, scale);
  });
}

// Z of a + i b, for reals a and b, holds both spectra: A[k] = (Z[k] + conj(Z[n - k])) / 2, and
// B[k] = (Z[k] - conj(Z[n - k])) / 2i. Writes A into `a` and B into `b`, half of each.
template <typename Real>
void separate(const FourierBlock<Real>& z, int64_t n, const FourierBlock<Real>& a,
              const FourierBlock<Real>& b) {
  constexpr int64_t kLanes = kFourierLanes<Real>;
  for (int64_t k = 0; k <= n / 2; ++k) {
    const int64_t at = k * kLanes, mirrored = (n - k) % n * kLanes;
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      const Real re = z.re[at + lane], im = z.im[at + lane], other_re = z.re[mirrored + lane],
                 other_im = z.im[mirrored + lane];
      a.re[at + lane] = (re + other_re) / 2;
      a.im[at + lane] = (im - other_im) / 2;
      b.re[at + lane] = (im + other_im) / 2;
      b.im[at + lane] = (other_re - re) / 2;
    }
  }
}

// The reverse, without the halves: Z = A + i B, and Z[n - k] = conj(A[k]) + i conj(B[k]).
template <typename Real>
void join(const FourierBlock<Real>& a, const FourierBlock<Real>& b, int64_t n, const FourierBlock<Real>& z) {
  constexpr int64_t kLanes = kFourierLanes<Real>;
  for (int64_t k = 0; k <= n / 2; ++k) {
    const int64_t at = k * kLanes, mirrored = (n - k) % n * kLanes;
    const bool is_real = at == mirrored;
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      const Real a_im = is_real ? Real(0) : a.im[at + lane], b_im = is_real ? Real(0) : b.im[at + lane];
      z.re[mirrored + lane] = a.re[at + lane] + b_im;
      z.im[mirrored + lane] = b.re[at + lane] - a_im;
      z.re[at + lane] = a.re[at + lane] - b_im;
      z.im[at + lane] = b.re[at + lane] + a_im;
    }
  }
}

// Two halves of spectra in the place of a block.
template <typename Real>
struct Halves {
  FourierBlock<Real> a, b;
  Halves(const FourierBlock<Real>& block, int64_t n) {
    const int64_t size = (n / 2 + 1) * kFourierLanes<Real>;
    a = {block.re, block.re + size};
    b = {block.re + 2 * size, block.re + 3 * size};
  }
};

template <typename Real>
void run_real(const RoutineCall& call, int64_t axis) {
  const Transform<Real> transform(call, call.inputs[1]);
  const FourierLines<Real> from(call.inputs[0], axis), to_re(call.outputs[0], axis),
      to_im(call.outputs[1], axis);
  const auto scale = static_cast<Real>(attribute<double>(call, "scale"));
  const int64_t n = transform.n();
  transform.for_each_group(from.count(), 2 * transform.kLanes, [&](int64_t first, auto x, auto spare) {
    const LaneLines evens = choose(from, first, 2, 0), odds = choose(from, first, 2, 1);
    gather(from, evens, x.re);
    gather(from, odds, x.im);
    const FourierBlock<Real> z = transform.run(x, spare);
    const Halves<Real> halves(z.re == x.re ? spare : x, n);
    separate(z, n, halves.a, halves.b);
    scatter(to_re, evens, halves.a.re, scale);
    scatter(to_im, evens, halves.a.im, scale);
    scatter(to_re, odds, halves.b.re, scale);
    scatter(to_im, odds, halves.b.im, scale);
  });
}

template <typename Real>
void run_inverse_real(const RoutineCall& call, int64_t axis) {
  const Transform<Real> transform(call, call.inputs[2]);
  const FourierLines<Real> from_re(call.inputs[0], axis), from_im(call.inputs[1], axis),
      to(call.outputs[0], axis);
  const auto scale = static_cast<Real>(attribute<double>(call, "scale"));
  const int64_t n = transform.n();
  transform.for_each_group(to.count(), 2 * transform.kLanes, [&](int64_t first, auto x, auto spare) {
    const LaneLines evens = choose(to, first, 2, 0), odds = choose(to, first, 2, 1);
    const Halves<Real> halves(spare, n);
    gather(from_re, evens, halves.a.re);
    gather(from_im, evens, halves.a.im);
    gather(from_re, odds, halves.b.re);
    gather(from_im, odds, halves.b.im);
    join(halves.a, halves.b, n, x);
    const FourierBlock<Real> y = transform.run(x, spare, true);
    scatter(to, evens, y.re, scale);
    scatter(to, odds, y.im, scale);
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

}  // namespace

void fourier(const RoutineCall& call) {
  const int64_t axis = checked_axis(call, 3, 2);
  if (call.inputs[0].dtype == DType::kF32) return run_complex<float>(call, axis);
  run_complex<double>(call, axis);
}

void real_fourier(const RoutineCall& call) {
  const int64_t axis = checked_axis(call, 2, 2);
  if (call.inputs[0].dtype == DType::kF32) return run_real<float>(call, axis);
  run_real<double>(call, axis);
}

void inverse_real_fourier(const RoutineCall& call) {
  const int64_t axis = checked_axis(call, 3, 1);
  if (call.inputs[0].dtype == DType::kF32) return run_inverse_real<float>(call, axis);
  run_inverse_real<double>(call, axis);
}

}  // namespace ingot::core::routines
