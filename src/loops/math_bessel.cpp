// SPDX-License-Identifier: Apache-2.0
// Modified Bessel functions of the first kind, in f64: by their power series up to 8, beyond by Chebyshev
// fits that were computed with 60 digits.
#include <span>

#include "loops/functions.h"
#include "loops/math_expressions.h"
#include "support/special.h"

namespace ingot::core::loops::math {
namespace {

constexpr double kSeriesLimit = 8;

// The sums of (x^2 / 4)^k / (k! (k + n)!), for n of 0 and 1.
constexpr double kSeries0[] = {2.5976979980828152e-48,
                               1.4962740468957016e-45,
                               7.915289708078262e-43,
                               3.8310002187098785e-40,
                               1.6894710964510564e-37,
                               6.757884385804225e-35,
                               2.4395962632753253e-32,
                               7.904291893012054e-30,
                               2.2843403570804838e-27,
                               5.8479113141260385e-25,
                               1.3157800456783586e-22,
                               2.5789288895295828e-20,
                               4.358389823304995e-18,
                               6.276081345559193e-16,
                               7.594058428126623e-14,
                               7.594058428126624e-12,
                               6.151187326782565e-10,
                               3.936759889140842e-08,
                               1.9290123456790124e-06,
                               6.944444444444444e-05,
                               0.001736111111111111,
                               0.027777777777777776,
                               0.25,
                               1.0,
                               1.0};
constexpr double kSeries1[] = {1.0390791992331261e-49,
                               6.234475195398757e-47,
                               3.4414303078601135e-44,
                               1.7413637357772174e-41,
                               8.045100459290744e-39,
                               3.3789421929021126e-36,
                               1.2839980333028028e-33,
                               4.391273273895586e-31,
                               1.3437296218120491e-28,
                               3.654944571328774e-26,
                               8.771866971189057e-24,
                               1.842092063949702e-21,
                               3.352607556388458e-19,
                               5.230067787965994e-17,
                               6.903689480115112e-15,
                               7.594058428126623e-13,
                               6.834652585313961e-11,
                               4.920949861426052e-09,
                               2.755731922398589e-07,
                               1.1574074074074073e-05,
                               0.00034722222222222224,
                               0.006944444444444444,
                               0.08333333333333333,
                               0.5,
                               1.0};
// exp(-x) sqrt(x) I(x) in 8 / x; the short ones to the precision of f32
constexpr double kTail0Single[] = {4.305951276899995e-06, -8.088482561435406e-06, 1.1381654844155635e-05,
                                   6.64681082132984e-06,  5.818653768795153e-05,  0.0004381497068165839,
                                   0.006233479906699338,  0.3989422803480024};
constexpr double kTail0Double[] = {
    -0.00020625613000710928, 0.002754586102149591,   -0.01688166326288412,   0.06315861046885889,
    -0.16173965720301126,    0.30115914919676046,    -0.4226806499009266,    0.4574716537368684,
    -0.3874580760084789,     0.2591535216254253,     -0.13755762950702652,   0.058018024464000964,
    -0.019402865965044088,   0.0051162141215216495,  -0.0010534714872346576, 0.00016718656282729656,
    -1.965854544137164e-05,  2.6263038166472937e-06, 2.6562479487025384e-06, 1.092788313560303e-05,
    5.706903757954856e-05,   0.00043829108105846625, 0.0062334731312643,     0.3989422804014327};
constexpr double kTail1Single[] = {-4.846246103506438e-06, 9.078301931977208e-06,  -1.3146091220457295e-05,
                                   -9.176262021964396e-06, -8.117324174934566e-05, -0.0007303232250720046,
                                   -0.018700427164555482,  0.39894228046272945};
constexpr double kTail1Double[] = {
    0.00018951498410895817, -0.002577885768663296,   0.016026454494419147,   -0.060648118200557814,
    0.15675961876233288,    -0.29412594735743847,    0.415438632883189,      -0.45202596245538723,
    0.38455573944229093,    -0.25818030518903023,    0.13747706563826012,    -0.05814041701572658,
    0.019488314139029392,   -0.005148742881159383,   0.0010619088336769628,  -0.00016877940449125983,
    1.9819810657171712e-05, -2.8050277401466393e-06, -3.269344015945698e-06, -1.4048910672582188e-05,
    -7.98966964462624e-05,  -0.0007304851341077404,  -0.018700419393808957,  0.39894228040143265};

struct Order {
  bool is_odd;
  std::span<const double> series, single_tail, double_tail;
};
constexpr Order kOrder0{false, kSeries0, kTail0Single, kTail0Double};
constexpr Order kOrder1{true, kSeries1, kTail1Single, kTail1Double};

Expr bessel_i64(const Expr& x, const Order& order, bool scaled, bool is_single) {
  const Expr magnitude = absolute(x), limit = number(x, kSeriesLimit), half = number(x, 0.5);
  const Expr is_small = less_equal(magnitude, limit);
  const Expr small_size = select(is_small, magnitude, limit), halved = small_size * half;
  Expr small = polynomial(halved * halved, order.series.last(is_single ? 18 : order.series.size()));
  if (order.is_odd) small = small * halved;
  if (scaled) small = small * moderate_exp(-small_size);
  const Expr tail = polynomial(limit / magnitude, is_single ? order.single_tail : order.double_tail);
  Expr large = tail / unary(Unary::kSquareRoot, magnitude);
  if (!scaled) {  // exp(x) may overflow where the function does not; NaN at infinity, as in torch
    const Expr root = exp(half * magnitude);
    large = large * root * root;
  }
  const Expr result = select(is_small, small, large);
  return order.is_odd ? select(less(x, number(x, 0)), -result, result) : result;  // 0 for -0, as in torch
}

template <const Order& kOrder, bool kScaled>
Expr bessel_i(const Expr& x) {
  if (x->dtype == DType::kF64) return bessel_i64(x, kOrder, kScaled, false);
  return convert(x->dtype, bessel_i64(convert(DType::kF64, x), kOrder, kScaled, true));
}

}  // namespace
}  // namespace ingot::core::loops::math

namespace ingot::core::loops::functions {

constinit const Function bessel_i0 = {
    .name = "bessel_i0", .evaluate = special::bessel_i0, .expand = math::bessel_i<math::kOrder0, false>};
constinit const Function bessel_i1 = {
    .name = "bessel_i1", .evaluate = special::bessel_i1, .expand = math::bessel_i<math::kOrder1, false>};
constinit const Function scaled_bessel_i0 = {.name = "scaled_bessel_i0",
                                             .evaluate = special::scaled_bessel_i0,
                                             .expand = math::bessel_i<math::kOrder0, true>};
constinit const Function scaled_bessel_i1 = {.name = "scaled_bessel_i1",
                                             .evaluate = special::scaled_bessel_i1,
                                             .expand = math::bessel_i<math::kOrder1, true>};

}  // namespace ingot::core::loops::functions
