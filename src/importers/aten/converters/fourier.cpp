// SPDX-License-Identifier: Apache-2.0
#include "importers/aten/converters/fourier.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>
#include <utility>

#include "importers/aten/converters/parts.h"
#include "importers/aten/converters/strided.h"
#include "ops/concat.h"
#include "ops/fourier.h"
#include "ops/view.h"

namespace ingot::core::aten {
namespace {

// One thread multiplies the square of a prime factor: beyond this torch's algorithm is another.
constexpr int64_t kLargestPrime = 1024;

int64_t largest_prime_of(int64_t n) {
  int64_t largest = 1;
  for (int64_t factor = 2; factor * factor <= n; ++factor) {
    for (; n % factor == 0; n /= factor) largest = factor;
  }
  return std::max(n, largest);
}

void require_length(Call& call, const Dim& n) {
  const std::optional<int64_t> known = n.constant();
  if (!known) return;
  call.require(*known > 0, "a Fourier transform of no numbers");
  if (largest_prime_of(*known) > kLargestPrime)
    call.refuse("a Fourier transform whose length has a prime factor above 1024");
}

Term size_of(Call& call, const Dim& size) { return {call, size_scalar(call.graph(), size, DType::kF64)}; }

// [2, n]: the cosines and sines of 2 pi k / n, computed in f64.
core::Value* roots_of(Call& call, const Dim& n, DType dtype) {
  const Term k(call, counting(call, n));
  const Term angle = k.to(DType::kF64) / size_of(call, n) * (2 * std::numbers::pi);
  const Term cosines(call, unsqueezed(call, angle.apply(ops::cos), 0)),
      sines(call, unsqueezed(call, angle.apply(ops::sin), 0));
  return Term(call, concatenated(call, {cosines, sines}, 0)).to(dtype);
}

// What torch's `norm` multiplies with: 0: nothing, 1: 1 / sqrt(count), 2: 1 / count.
class Normalization {
 public:
  Normalization(Call& call, const Dim& count) : count_(count), kind_(call.integer("normalization")) {
    call.require(kind_ >= 0 && kind_ <= 2, "an unknown normalization");
  }
  // Part of the transform, if the sizes are known.
  double scale() const {
    const std::optional<int64_t> count = count_.constant();
    if (!count || kind_ == 0) return 1;
    const auto size = static_cast<double>(*count);
    return 1 / (kind_ == 1 ? std::sqrt(size) : size);
  }
  // Otherwise a product.
  Term apply(const Term& x) const {
    if (count_.is_constant() || kind_ == 0) return x;
    const Term size = size_of(x.call(), count_);
    return x / (kind_ == 1 ? size.apply(ops::square_root) : size).to(x.dtype());
  }

 private:
  Dim count_;
  int64_t kind_;
};

// The rest of a spectrum of reals repeats its first half, conjugated and backwards.
Parts whole_of_half(const Parts& half, size_t axis, const Dim& n) {
  Call& call = half.re.call();
  const Dim rest = n - floor_divide(n, 2);
  const auto whole = [&](const Term& part, bool negated) {
    core::Value* mirrored = sliced(call, part, axis, 1, rest);
    mirrored = emit(call, ops::flip, {mirrored}, ops::Axes{{static_cast<int64_t>(axis)}});
    const Term other(call, mirrored);
    return Term(call, concatenated(call, {part, negated ? -other : other}, axis));
  };
  return {whole(half.re, false), whole(half.im, true)};
}

// The dims of a call, of which the last is that with half a spectrum.
struct Axes {
  std::vector<size_t> all;
  Dim count = 1;  // of the numbers that one result is a sum of
};

Axes axes_of(Call& call, const Shape& shape) {
  Axes axes{call.axes_in_order("dim", shape.size())};
  for (const size_t axis : axes.all) {
    require_length(call, shape[axis]);
    axes.count = axes.count * shape[axis];
  }
  return axes;
}

void require_dtype(Call& call, DType dtype) {
  if (dtype != DType::kF32 && dtype != DType::kF64)
    call.refuse("a Fourier transform of numbers other than f32 and f64");
}

Parts parts_of_results(Call& call, const core::Value* first) {
  const auto& results = first->producer->results;
  return {Term(call, results[0]), Term(call, results[1])};
}

Parts along(const Parts& x, size_t axis, bool inverse, double scale) {
  Call& call = x.re.call();
  const ops::Fourier fourier{static_cast<int64_t>(axis), inverse, scale};
  core::Value* roots = roots_of(call, x.re.shape()[axis], x.re.dtype());
  return parts_of_results(call, emit(call, ops::fourier, {x.re, x.im, roots}, fourier));
}

void give_parts(Call& call, const Parts& x, const Normalization& norm) {
  call.give(joined(call, norm.apply(x.re), norm.apply(x.im)));
}

}  // namespace

void fourier_of_complex(Call& call) {
  Parts x = parts_of(call, call.pair("self"));
  require_dtype(call, x.re.dtype());
  const Axes axes = axes_of(call, x.re.shape());
  const Normalization norm(call, axes.count);
  double scale = norm.scale();
  for (const size_t axis : axes.all) x = along(x, axis, !call.flag("forward"), std::exchange(scale, 1));
  give_parts(call, x, norm);
}

// Zeros around the window, up to the length of a transform.
Term window_of(Call& call, int64_t size, DType dtype) {
  const int64_t length = call.has("win_length") ? call.integer("win_length") : size;
  call.require(length > 0 && length <= size, "a window that is longer than the transform");
  core::Value* window = call.optional_tensor("window");
  if (window == nullptr) window = filled(call, {length}, 1, dtype);
  call.require(window->type.shape == Shape{length}, "a window of another length");
  const int64_t before = (size - length) / 2, after = size - length - before;
  const Term given = Term(call, window).to(dtype);
  if (length == size) return given;
  return {call, emit(call, ops::pad, {given}, ops::Pad{{before}, {after}, 0, "constant"})};
}

// A line, or one line per row; the result is [.., numbers, windows].
void short_time_fourier(Call& call) {
  core::Value* x = call.tensor("self");
  require_dtype(call, x->type.dtype);
  call.require(x->type.rank() == 1 || x->type.rank() == 2, "a tensor of more than two dims");
  const bool is_aligned = call.has("align_to_window") && call.flag("align_to_window");
  call.require(is_complex(call.result_meta().dtype) && !is_aligned,
               "return_complex=False, or align_to_window");
  const int64_t size = call.integer("n_fft"),
                step = call.has("hop_length") ? call.integer("hop_length") : size / 4;
  require_length(call, size);
  const size_t axis = x->type.rank() - 1;
  const Term windows =
      Term(call, windows_of(call, x, axis, size, step)) * window_of(call, size, x->type.dtype);
  const double scale = call.flag("normalized") ? 1 / std::sqrt(static_cast<double>(size)) : 1;
  const ops::RealFourier half{static_cast<int64_t>(axis + 1), scale};
  core::Value* roots = roots_of(call, size, x->type.dtype);
  Parts result = parts_of_results(call, emit(call, ops::real_fourier, {windows, roots}, half));
  if (call.has("onesided") && !call.flag("onesided")) result = whole_of_half(result, axis + 1, size);
  call.give(joined(call, swapped(call, result.re, axis, axis + 1), swapped(call, result.im, axis, axis + 1)));
}

// The last of the axes first, as its input has no imaginary part.
void fourier_of_reals(Call& call) {
  const Term x(call, call.tensor("self"));
  require_dtype(call, x.dtype());
  Axes axes = axes_of(call, x.shape());
  call.require(!axes.all.empty(), "a Fourier transform of no dims");
  const Normalization norm(call, axes.count);
  const size_t last = axes.all.back();
  const Dim n = x.shape()[last];
  const ops::RealFourier half{static_cast<int64_t>(last), norm.scale()};
  Parts result =
      parts_of_results(call, emit(call, ops::real_fourier, {x, roots_of(call, n, x.dtype())}, half));
  if (!call.flag("onesided")) result = whole_of_half(result, last, n);
  axes.all.pop_back();
  for (const size_t axis : axes.all) result = along(result, axis, false, 1);
  give_parts(call, result, norm);
}

void fourier_to_reals(Call& call) {
  Parts x = parts_of(call, call.pair("self"));
  require_dtype(call, x.re.dtype());
  std::vector<size_t> order = call.axes_in_order("dim", x.re.shape().size());
  call.require(!order.empty(), "a Fourier transform of no dims");
  const size_t last = order.back();
  Shape shape = x.re.shape();  // of the result
  shape[last] = call.dim("last_dim_size");
  const Normalization norm(call, axes_of(call, shape).count);
  order.pop_back();
  for (const size_t axis : order) x = along(x, axis, true, 1);
  const ops::RealFourier whole{static_cast<int64_t>(last), norm.scale()};
  core::Value* roots = roots_of(call, shape[last], x.re.dtype());
  call.give(norm.apply(Term(call, emit(call, ops::inverse_real_fourier, {x.re, x.im, roots}, whole))));
}

}  // namespace ingot::core::aten
