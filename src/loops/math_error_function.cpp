// SPDX-License-Identifier: Apache-2.0
// erf and functions derived from it. Coefficients are Chebyshev fits, computed with 60 digits.
#include <cmath>

#include "loops/functions.h"
#include "loops/math_expressions.h"

namespace ingot::core::loops::math {
namespace {

// erf(x) / x - 1 in x^2 for |x| <= 1
constexpr double kSmall32[] = {7.87587487e-05, -0.00080168643, 0.00518908724, -0.0268542115,
                               0.112835944,    -0.37612626,    0.128379167};
constexpr double kSmall64[] = {-4.2309458242953377e-12, 8.7090451290531062e-11,  -1.216456005728345e-09,
                               1.4792401209404813e-08,  -1.6364642158167616e-07, 1.6462045441468418e-06,
                               -1.4925647567519332e-05, 0.00012055332902888736,  -0.00085483270219348297,
                               0.0052239776254232985,   -0.02686617064512984,    0.11283791670955121,
                               -0.37612638903183754,    0.12837916709551258};
// -log(1 - erf(x)) for 1 <= x <= 4, where erf reaches 1
constexpr double kLarge32[] = {-1.61854484e-06, 4.57045353e-05, -0.000593947072,
                               0.00474676862,   -0.0263862498,  0.110021278,
                               0.631886005,     1.13019967,     -0.000312075746};
// (1 - erf(x)) exp(x^2) in (x - 2) / (x + 2) for 1 <= x <= 6
constexpr double kLarge64[] = {-4.2529228733691916e-07, -5.2653151512392614e-07, 1.1766733323457687e-06,
                               3.7874017547960887e-06,  1.3935407223526918e-06,  -1.3967891548200675e-05,
                               -2.7580030530192446e-05, 2.7525478778487625e-05,  0.00017436117977748445,
                               4.3555601371157433e-05,  -0.0009819770272212142,  -0.00084714325086791527,
                               0.0069974617392158309,   0.0037328924043265746,   -0.078978581015732283,
                               0.24165819424246648,     -0.42718584741395838,    0.25539567631050575};

// (1 - erf(x)) exp(x^2) x in 1 / x^2 for 6 <= x <= 28
constexpr double kFarTail64[] = {86636.6555751445,    -24194.64454393511,  4002.2479045020195,
                                 -585.0251591189383,  91.47198618343951,   -16.659493963598358,
                                 3.7024821065013502,  -1.0578554158216689, 0.4231421875204269,
                                 -0.2820947917736846, 0.5641895835477562};

// (1 - erf(x)) exp(x^2) in (x - 2.5) / (x + 2.5) for 0 <= x <= 10.5, where f32 has reached 0; 2^r for |r| <=
// 1/2. Errors are below those of f32, for arithmetic in f64.
constexpr double kComplement32[] = {-3.7015555543195529e-05, -0.00010990567957002051, 0.00023642830176423077,
                                    0.00086793004596411516,  -0.0026460276105014203,  -0.0039920205683465987,
                                    0.039923146242328192,    -0.12503322031629768,    0.25171316122185083,
                                    -0.3717367286911496,     0.21080636427988153};
constexpr double kPowerOfTwo[] = {0.00015477959926057586, 0.0013400431923037527, 0.0096179946455313206,
                                  0.055503272148983138,   0.24022651505490472,   0.69314720671029195,
                                  0.99999999991876465};

// -log2 of the normal distribution at -x for 0 <= x <= 5.6, where it falls below 2^-26. Minimizes the error
// of the distribution itself (least squares, reweighted until the largest errors are equal).
constexpr double kNormalTail[] = {2.77216168e-06, -3.86220891e-05, 0.000182554009,
                                  0.00014585437,  -0.00707545038,  0.0525050126,
                                  0.459204912,    1.15110576,      1};

Expr complement32(const Expr& x) { return moderate_exp(-polynomial(x, kLarge32)); }

// (1 - erf(x)) exp(x^2) for 1 <= x <= 6
Expr scaled_complement64(const Expr& x) {
  const Expr two = number(x, 2);
  return polynomial((x - two) / (x + two), kLarge64);
}

// The same for x >= 6.
Expr scaled_far_tail64(const Expr& x) { return polynomial(number(x, 1) / (x * x), kFarTail64) / x; }

Expr complement64(const Expr& x) { return moderate_exp(-(x * x)) * scaled_complement64(x); }

Expr erf(const Expr& x) {
  const bool wide = x->dtype == DType::kF64;
  const Expr magnitude = absolute(x), one = number(x, 1), limit = number(x, wide ? 6 : 4);
  const Expr small = wide ? erf_below_one(x) : fma(x, polynomial(x * x, kSmall32), x);
  const Expr limited = select(less(limit, magnitude), limit, magnitude);
  const Expr large = with_sign_of(one - (wide ? complement64(limited) : complement32(limited)), x);
  return select(less(magnitude, one), small, large);
}

// By one polynomial for all magnitudes. A step of Newton's method makes a quotient of f64 of one of f32.
Expr erfc32(const Expr& single) {
  const Expr limit = number(single, 10.5), center = number(single, 2.5), magnitude = absolute(single);
  const Expr limited = select(less(limit, magnitude), limit, magnitude);
  const Expr rough = convert(DType::kF64, number(single, 1) / (limited + center));
  const Expr x = convert(DType::kF64, limited), one = number(x, 1), wide_center = number(x, 2.5);
  const Expr reciprocal = fma(rough, fma(-rough, x + wide_center, one), rough);
  const Expr scaled = polynomial((x - wide_center) * reciprocal, kComplement32);
  const Expr exponent = x * x * number(x, -1.4426950408889634), magic = number(x, 0x1.8p52);
  const Expr shifted = exponent + magic;
  const Expr power = polynomial(exponent - (shifted - magic), kPowerOfTwo);
  const Expr tail = with_exponent_raised(scaled * power, bits_of(shifted));
  const Expr result = select(less(single, number(single, 0)), number(x, 2) - tail, tail);
  return convert(DType::kF32, result);
}

// 1 - erf(x) without cancellation where erf is near 1.
Expr erfc(const Expr& x) {
  if (x->dtype == DType::kF32) return erfc32(x);
  const Expr magnitude = absolute(x), one = number(x, 1), limit = number(x, 28);
  const Expr limited = select(less(limit, magnitude), limit, magnitude);
  const Expr square = limited * limited;
  const Expr power = exp(-square);
  const Expr lost = fma(limited, limited, -square);  // exp(-square - lost) = power (1 - lost)
  const Expr tail = fma(-power, lost, power) * scaled_erfc_above_one(limited);
  const Expr large = select(less(x, number(x, 0)), number(x, 2) - tail, tail);
  return select(less(magnitude, one), one - erf(x), large);
}

// Using the tail itself avoids the cancellation of 1 + erf(x / sqrt(2)) for negative x.
Expr gelu(const Expr& x) {
  const Expr zero = number(x, 0), one = number(x, 1);
  if (x->dtype == DType::kF64) return x * number(x, 0.5) * (one + erf(x * number(x, M_SQRT1_2)));
  const Expr magnitude = absolute(x);
  const Expr tail =
      select(less(magnitude, number(x, 5.6)), moderate_exp2(-polynomial(magnitude, kNormalTail)), zero);
  return x * select(less(x, zero), tail, one - tail);
}

}  // namespace

Expr erf_below_one(const Expr& x) { return fma(x, polynomial(x * x, kSmall64), x); }

Expr scaled_erfc_above_one(const Expr& x) {
  return select(less(x, number(x, 6)), scaled_complement64(x), scaled_far_tail64(x));
}

}  // namespace ingot::core::loops::math

namespace ingot::core::loops::functions {

constinit const Function erf = {
    .name = "erf", .evaluate = [](double x) { return std::erf(x); }, .expand = math::erf};
constinit const Function erfc = {
    .name = "erfc", .evaluate = [](double x) { return std::erfc(x); }, .expand = math::erfc};
constinit const Function gelu = {.name = "gelu",
                                 .evaluate = [](double x) { return x * 0.5 * std::erfc(-x * M_SQRT1_2); },
                                 .expand = math::gelu};

}  // namespace ingot::core::loops::functions
