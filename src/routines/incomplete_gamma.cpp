// SPDX-License-Identifier: Apache-2.0
#include "routines/incomplete_gamma.h"

#include <array>
#include <cmath>
#include <cstring>
#include <iterator>
#include <optional>

#include "support/special.h"
#include "support/target_attribute.h"

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wpsabi"  // of functions that take vectors: all of them are inlined
#endif

namespace ingot::core::routines {
namespace {

using special::kEpsilon, special::kPi;

// u - log(1 + u) for u = (x - a) / a, by its power series where that cancels.
double logarithm_excess(double a, double x) {
  const double u = (x - a) / a;
  if (std::fabs(u) > 0.3) return u - std::log(x / a);
  double power = u * u, sum = 0;
  for (double k = 2; std::fabs(power) > sum * kEpsilon; ++k, power *= -u) sum += power / k;
  return sum;
}

// B(2k) / (2k (2k - 1)), of the Bernoulli numbers, for k from 8 to 1.
constexpr double kStirling[] = {-3617.0 / 122400, 1.0 / 156,  -691.0 / 360360, 1.0 / 1188,
                                -1.0 / 1680,      1.0 / 1260, -1.0 / 360,      1.0 / 12};

// x to the power a, times exp(-x) / gamma(a). For large a by Stirling's series: the logarithms would cancel.
// What is smaller than normal numbers is 0, as torch's.
double scale_of(double a, double x) {
  constexpr double kLarge = 20, kSmallestLogarithm = -709.782712893384;
  if (a < kLarge) {
    const double power = a * std::log(x) - x - special::log_gamma(a);
    return power < kSmallestLogarithm ? 0 : std::exp(power);
  }
  double stirling = 0;
  for (const double coefficient : kStirling) stirling = stirling / (a * a) + coefficient;
  return std::sqrt(a / (2 * kPi)) * std::exp(-a * logarithm_excess(a, x) - stirling / a);
}

// Highest power first: (-1)^k zeta(k) / k of log(gamma(1 + a)) for k from 24 to 2, and Euler's constant.
constexpr double kLogGamma[] = {
    0.04166666915034121, -0.04347826605304026, 0.04545455629320467,  -0.047619070330142226,
    0.05000004769810169, -0.05263167937961666, 0.055555767627403614, -0.058823978658684585,
    0.06250095514121304, -0.06666870588242046, 0.07143294629536133,  -0.0769325164113522,
    0.083353840546109,   -0.09095401714582904, 0.1000994575127818,   -0.11133426586956469,
    0.12550966952474304, -0.1440498967688461,  0.1695571769974082,   -0.20738555102867398,
    0.27058080842778454, -0.40068563438653143, 0.8224670334241132,   -std::numbers::egamma};

// log(gamma(1 + a)), also where 1 + a is 1.
double log_gamma_beside_one(double a) {
  if (a > 0.2) return special::log_gamma(a + 1);
  double sum = 0;
  for (const double coefficient : kLogGamma) sum = sum * a + coefficient;
  return sum * a;
}

// Temme's uniform expansion, to its second term: for large a. `side` 1: the upper function, -1: the lower.
double expanded_gamma(double a, double x, double side) {
  const double u = (x - a) / a, eta = std::copysign(std::sqrt(2 * logarithm_excess(a, x)), u);
  const double c = std::fabs(eta) < 1e-3 ? eta / 12 - 1.0 / 3 : 1 / u - 1 / eta;
  const double rest = std::exp(-a * eta * eta / 2) * c / std::sqrt(2 * kPi * a);
  return 0.5 * std::erfc(side * eta * std::sqrt(a / 2)) + side * rest;
}
constexpr double kLargeOrder = 1e7;

// torch's values of the lower function where either is 0, infinite, negative or not a number; nullopt
// elsewhere.
std::optional<double> lower_at_edge(double a, double x) {
  if (x < 0 || a < 0 || (a == 0 && !(x > 0)) || (std::isinf(a) && std::isinf(x))) return special::kNan;
  if (a == 0) return 1;
  if (x == 0 || std::isinf(a)) return 0;
  if (std::isinf(x)) return 1;
  return std::isnan(a) || std::isnan(x) ? std::optional(special::kNan) : std::nullopt;
}

// Ways to sum up the function of finite positive a and x: the series of the lower function, and that and the
// continued fraction of the upper one.
enum Way { kLowerSeries, kUpperSeries, kUpperFraction, kWays };

// Whichever converges, and does not cancel (Cephes' choice).
Way way_of(double a, double x, bool is_upper) {
  constexpr double kShortSeries = 8;    // up to here the series is faster than the fraction
  constexpr double kSmallOrder = 1e-3;  // below, its scale may underflow
  const bool is_short = x <= 1 || (x <= kShortSeries && a >= kSmallOrder);
  if (!is_upper && (is_short || x <= a)) return kLowerSeries;
  if (x > 1.1) return x < a ? kLowerSeries : kUpperFraction;
  return (x <= 0.5 ? -0.4 / std::log(x) < a : x * 1.1 < a) ? kLowerSeries : kUpperSeries;
}

constexpr int kGroupSize = 8;

// Pairs that are summed up together, one per lane. Those beyond the last converge at once.
struct Group {
  std::array<double, kGroupSize> a, x, factors, sums;
  std::array<int64_t, kGroupSize> positions;
  int count = 0;
};

// Steps between two tests of convergence.
constexpr int kSteps = 4;
constexpr int kMostTests = 250'000;

template <size_t Bytes>
struct SumsOf {
  typedef double Lanes __attribute__((vector_size(Bytes)));
  typedef int64_t Mask __attribute__((vector_size(Bytes)));
  static constexpr int kLanes = Bytes / sizeof(double);

  static INGOT_INLINE bool any(const Mask& mask) {
    std::array<int64_t, kLanes> lanes;
    std::memcpy(lanes.data(), &mask, Bytes);
    int64_t bits = 0;
    for (const int64_t lane : lanes) bits |= lane;
    return bits != 0;
  }
  static INGOT_INLINE Lanes magnitude(const Lanes& x) { return x < 0 ? -x : x; }

  // The sum of x^k / ((a + 1) ... (a + k)).
  static INGOT_INLINE Lanes lower_series(const Lanes& a, const Lanes& x, double tolerance) {
    Lanes term = Lanes{} + 1, sum = term, divisor = a;
    do {
      for (int step = 0; step < kSteps; ++step) {
        divisor += 1;
        term *= x / divisor;
        sum += term;
      }
      term = term > sum * tolerance ? term : Lanes{};
    } while (any(term > 0));
    return sum;
  }

  // The sum of (-x)^k / (k! (a + k)), for small x.
  static INGOT_INLINE Lanes upper_series(const Lanes& a, const Lanes& x, double tolerance) {
    Lanes factor = Lanes{} + 1, sum = {};
    Mask going;
    double k = 0;
    do {
      Lanes term;
      for (int step = 0; step < kSteps; ++step) {
        factor *= x / -++k;
        term = factor / (a + k);
        sum += term;
      }
      going = magnitude(term) > magnitude(sum) * tolerance;
      factor = going ? factor : Lanes{};
    } while (any(going));
    return sum;
  }

  // A convergent of a continued fraction. Both parts have the same recurrence, which needs no division.
  struct Convergent {
    Lanes numerator, denominator;
    INGOT_INLINE Convergent after(const Convergent& last, const Lanes& a, const Lanes& b) const {
      return {b * numerator + a * last.numerator, b * denominator + a * last.denominator};
    }
    INGOT_INLINE Mask differs(const Convergent& other, double tolerance) const {
      constexpr double kRounding = 4;  // epsilons that equal convergents may differ by
      const Lanes product = numerator * other.denominator;
      const Lanes difference = product - other.numerator * denominator;
      return magnitude(difference) > magnitude(product) * (kRounding * tolerance);
    }
    INGOT_INLINE Convergent times(const Lanes& factor) const {
      return {numerator * factor, denominator * factor};
    }
  };

  static INGOT_INLINE Lanes upper_fraction(const Lanes& a, const Lanes& x, double tolerance) {
    constexpr double kLarge = 0x1p300;  // finite after `kSteps` more steps, squared
    const Lanes one = Lanes{} + 1;
    Lanes b = x + 1 - a, value = {};
    Convergent last{Lanes{}, one}, current{one, b};
    Mask going = one > 0;
    double k = 0;
    for (int test = 0; test < kMostTests && any(going); ++test) {
      for (int step = 0; step < kSteps; ++step) {
        b += 2;
        ++k;
        const Convergent next = current.after(last, k * (a - k), b);
        last = current, current = next;
      }
      value = going ? current.numerator / current.denominator : value;
      going &= current.differs(last, tolerance);
      const Lanes factor = magnitude(current.denominator) > kLarge ? Lanes{} + 1 / kLarge : one;
      last = last.times(factor), current = current.times(factor);
    }
    return value;
  }

  static INGOT_INLINE void sum(Way way, Group& group, double tolerance) {
    for (int i = 0; i < group.count; i += kLanes) {
      Lanes a, x;
      std::memcpy(&a, group.a.data() + i, Bytes);
      std::memcpy(&x, group.x.data() + i, Bytes);
      const Lanes sums = way == kLowerSeries   ? lower_series(a, x, tolerance)
                         : way == kUpperSeries ? upper_series(a, x, tolerance)
                                               : upper_fraction(a, x, tolerance);
      std::memcpy(group.sums.data() + i, &sums, Bytes);
    }
  }
};

// Why not on Windows: fourier_vectors.h.
void sum_any(Way way, Group& group, double tolerance) { SumsOf<16>::sum(way, group, tolerance); }
#if defined(INGOT_TARGET) && !defined(_WIN32)
INGOT_TARGET("arch=x86-64-v3")
void sum_v3(Way way, Group& group, double tolerance) { SumsOf<32>::sum(way, group, tolerance); }
INGOT_TARGET("arch=x86-64-v4")
void sum_v4(Way way, Group& group, double tolerance) { SumsOf<64>::sum(way, group, tolerance); }
#endif

void sum_up(Way way, Group& group, double tolerance) {
#if defined(INGOT_TARGET) && !defined(_WIN32)
  if (__builtin_cpu_supports("x86-64-v4")) return sum_v4(way, group, tolerance);
  if (__builtin_cpu_supports("x86-64-v3")) return sum_v3(way, group, tolerance);
#endif
  sum_any(way, group, tolerance);
}

// Gathers pairs by the way that suits them, until they fill vectors.
class Gatherer {
 public:
  explicit Gatherer(const GammaPairs& pairs) : pairs_(pairs) {}

  void run() {
    for (int64_t i = 0; i < pairs_.count; ++i) add(i);
    for (int way = 0; way < kWays; ++way) finish(static_cast<Way>(way));
  }

 private:
  void add(int64_t i) {
    const double a = pairs_.orders[i], x = pairs_.arguments[i];
    double& result = pairs_.results[i];
    if (const auto edge = lower_at_edge(a, x)) {
      result = pairs_.is_upper ? 1 - *edge : *edge;
    } else if (a > kLargeOrder) {
      result = expanded_gamma(a, x, pairs_.is_upper ? 1 : -1);
    } else {
      add_to(way_of(a, x, pairs_.is_upper), a, x, i);
    }
  }

  void add_to(Way way, double a, double x, int64_t i) {
    const double factor = way == kUpperSeries ? a * std::log(x) - log_gamma_beside_one(a) : scale_of(a, x);
    if (way != kUpperSeries && factor == 0) {
      pairs_.results[i] = of_side(way, 0);
      return;
    }
    Group& group = groups_[way];
    const auto at = static_cast<size_t>(group.count++);
    group.a[at] = a, group.x[at] = x, group.factors[at] = factor, group.positions[at] = i;
    if (group.count == kGroupSize) finish(way);
  }

  void finish(Way way) {
    Group& group = groups_[way];
    const auto count = static_cast<size_t>(group.count);
    for (size_t i = count; i < kGroupSize; ++i) group.a[i] = 1, group.x[i] = 1;
    sum_up(way, group, pairs_.tolerance);
    for (size_t i = 0; i < count; ++i)
      pairs_.results[group.positions[i]] = of_side(way, value_of(way, group, i));
    group.count = 0;
  }

  static double value_of(Way way, const Group& group, size_t i) {
    const double factor = group.factors[i], sum = group.sums[i];
    if (way == kUpperFraction) return sum * factor;
    if (way == kLowerSeries) return sum * factor / group.a[i];
    return -std::expm1(factor) - group.a[i] * std::exp(factor) * sum;
  }

  double of_side(Way way, double value) const {
    return (way == kLowerSeries) == pairs_.is_upper ? 1 - value : value;
  }

  const GammaPairs& pairs_;
  std::array<Group, kWays> groups_;
};

}  // namespace

void incomplete_gammas(const GammaPairs& pairs) { Gatherer(pairs).run(); }

}  // namespace ingot::core::routines
