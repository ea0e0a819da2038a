// SPDX-License-Identifier: Apache-2.0
// Functions of one or two elements, by name.
#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "routines/incomplete_gamma.h"
#include "routines/routines.h"
#include "routines/widened.h"
#include "support/error.h"
#include "support/special.h"
#include "support/thread_pool.h"

namespace ingot::core::routines {
namespace {

struct Unary {
  std::string_view name;
  double (*function)(double);
};
struct Binary {
  std::string_view name;
  double (*function)(double, double);
};

constexpr Unary kUnary[] = {
    {"airy", special::airy},
    {"bessel_i0", special::bessel_i0},
    {"bessel_i1", special::bessel_i1},
    {"bessel_j0", special::bessel_j0},
    {"bessel_j1", special::bessel_j1},
    {"bessel_k0", special::bessel_k0},
    {"bessel_k1", special::bessel_k1},
    {"bessel_y0", special::bessel_y0},
    {"bessel_y1", special::bessel_y1},
    {"digamma", special::digamma},
    {"exponent", special::exponent},
    {"fraction", special::fraction},
    {"inverse_erf", special::inverse_erf},
    {"inverse_normal", special::inverse_normal},
    {"log_gamma", special::log_gamma},
    {"scaled_bessel_i0", special::scaled_bessel_i0},
    {"scaled_bessel_i1", special::scaled_bessel_i1},
    {"scaled_bessel_k0", special::scaled_bessel_k0},
    {"scaled_bessel_k1", special::scaled_bessel_k1},
    {"scaled_erfc", special::scaled_erfc},
};
constexpr Binary kBinary[] = {
    {"chebyshev_t", special::chebyshev_t}, {"chebyshev_u", special::chebyshev_u},
    {"chebyshev_v", special::chebyshev_v}, {"chebyshev_w", special::chebyshev_w},
    {"hermite_h", special::hermite_h},     {"hermite_he", special::hermite_he},
    {"laguerre", special::laguerre},       {"legendre", special::legendre},
    {"polygamma", special::polygamma},     {"zeta", special::zeta},
};

template <typename Row, size_t kCount>
auto function_named(const Row (&rows)[kCount], const std::string& name) {
  const auto found = std::ranges::find(rows, name, &Row::name);
  if (found != std::end(rows)) return found->function;
  throw UserError("INGOT-U331", fmt::format("there is no special function '{}' of that many operands", name));
}

void narrow(double x, float& to) { to = static_cast<float>(x); }
void narrow(double x, double& to) { to = x; }
void narrow(double x, Half& to) { to.bits = float_to_half(static_cast<float>(x)); }
void narrow(double x, BFloat16& to) { to.bits = float_to_bfloat16(static_cast<float>(x)); }

constexpr int64_t kGrain = 256;

// some(begin, end) over the threads of the call.
template <typename Some>
void for_each_part(const RoutineCall& call, int64_t count, const Some& some) {
  auto part = [&](int64_t begin, int64_t end, int) { some(begin, end); };
  if (call.pool == nullptr) return part(0, count, 0);
  call.pool->parallel_for(count, kGrain, part);
}

// y[i] = each(i) over the threads of the call.
template <typename Each>
void for_each_element(const RoutineCall& call, int64_t count, const Each& each) {
  for_each_part(call, count, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) each(i);
  });
}

// Of values as they are stored: it has no meaning in another dtype.
template <typename Stored>
  requires std::is_floating_point_v<Stored>
Stored next_after(Stored x, Stored to) {
  return std::nextafter(x, to);
}
// Magnitudes of one sign are in the order of their bits.
template <typename Stored>
Stored next_after(Stored x, Stored to) {
  constexpr uint16_t kSign = 0x8000;
  const float from = widened(x), target = widened(to);
  if (std::isnan(from) || std::isnan(target)) {
    narrow(double{from} + double{target}, x);
    return x;
  }
  if (from == target) return from == 0 ? to : x;
  if (from == 0) return {static_cast<uint16_t>((to.bits & kSign) | 1)};
  const bool grows = (from < target) == (from > 0);
  return {static_cast<uint16_t>(grows ? x.bits + 1 : x.bits - 1)};
}

template <typename Stored>
void apply_next_after(const RoutineCall& call, int64_t count) {
  const auto* x = reinterpret_cast<const Stored*>(call.inputs[0].data);
  const auto* to = reinterpret_cast<const Stored*>(call.inputs[1].data);
  auto* y = reinterpret_cast<Stored*>(call.outputs[0].data);
  for_each_element(call, count, [&](int64_t i) { y[i] = next_after(x[i], to[i]); });
}

template <typename Stored>
void apply_incomplete_gamma(const RoutineCall& call, bool is_upper, int64_t count) {
  // Of dtypes with fewer bits than f64: far below half a unit of the last place, after thousands of terms
  // too.
  constexpr double kTolerance = sizeof(Stored) == sizeof(double) ? special::kEpsilon : 0x1p-38;
  const auto* order = reinterpret_cast<const Stored*>(call.inputs[0].data);
  const auto* x = reinterpret_cast<const Stored*>(call.inputs[1].data);
  auto* y = reinterpret_cast<Stored*>(call.outputs[0].data);
  for_each_part(call, count, [&](int64_t begin, int64_t end) {
    double orders[kGrain], arguments[kGrain], results[kGrain];
    for (; begin < end; begin += kGrain) {
      const int64_t some = std::min(kGrain, end - begin);
      for (int64_t i = 0; i < some; ++i)
        orders[i] = widened(order[begin + i]), arguments[i] = widened(x[begin + i]);
      incomplete_gammas({orders, arguments, results, some, is_upper, kTolerance});
      for (int64_t i = 0; i < some; ++i) narrow(results[i], y[begin + i]);
    }
  });
}

template <typename Stored>
void apply(const RoutineCall& call, const std::string& name, int64_t count) {
  const auto* x = reinterpret_cast<const Stored*>(call.inputs[0].data);
  auto* y = reinterpret_cast<Stored*>(call.outputs[0].data);
  if (call.inputs.size() == 1) {
    const auto function = function_named(kUnary, name);
    return for_each_element(call, count, [&](int64_t i) { narrow(function(widened(x[i])), y[i]); });
  }
  if (name == "next_after") return apply_next_after<Stored>(call, count);
  if (name == "lower_gamma" || name == "upper_gamma")
    return apply_incomplete_gamma<Stored>(call, name == "upper_gamma", count);
  const auto* other = reinterpret_cast<const Stored*>(call.inputs[1].data);
  const auto function = function_named(kBinary, name);
  for_each_element(call, count, [&](int64_t i) { narrow(function(widened(x[i]), widened(other[i])), y[i]); });
}

}  // namespace

void special_function(const RoutineCall& call) {
  const auto fits = [&](const TensorView& view) {
    return view.dtype == call.inputs[0].dtype && view.shape == call.inputs[0].shape;
  };
  require_fit((call.inputs.size() == 1 || call.inputs.size() == 2) && call.outputs.size() == 1 &&
                  std::ranges::all_of(call.inputs, fits) && fits(call.outputs[0]),
              "special_function");
  const auto& name = attribute<std::string>(call, "function");
  int64_t count = 1;
  for (const int64_t size : call.inputs[0].shape) count *= size;
  switch (call.inputs[0].dtype) {
    case DType::kF16:
      return apply<Half>(call, name, count);
    case DType::kBF16:
      return apply<BFloat16>(call, name, count);
    case DType::kF32:
      return apply<float>(call, name, count);
    case DType::kF64:
      return apply<double>(call, name, count);
    default:
      return require_fit(false, "special_function");
  }
}

}  // namespace ingot::core::routines
