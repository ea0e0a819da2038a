// SPDX-License-Identifier: Apache-2.0
// Bessel functions of the first and second kind, in f64: up to 8 by Chebyshev fits, beyond by their modulus
// and phase. All fits were computed with 60 digits; the short ones are to the precision of f32.
#include <span>

#include "loops/functions.h"
#include "loops/math_expressions.h"
#include "support/special.h"

namespace ingot::core::loops::math {
namespace {

constexpr double kNearLimit = 8;

// J0(x), and J1(x) / x, over the factors of their zeros, in x^2 / 32 - 1
constexpr double kNear0Single[] = {3.4063540255152697e-13,  -8.064042244822174e-12,  1.6276296659994082e-10,
                                   -2.7948122557793017e-09, 3.998839476948713e-08,   -4.6771283255730665e-07,
                                   4.366932324180517e-06,   -3.1573425393360834e-05, 0.00016977200714005512,
                                   -0.0006415390646417217,  0.0015636431645931613,   -0.0021197942894796524,
                                   0.0011434937743762545};
constexpr double kNear0Double[] = {
    -1.1360491745378638e-17, 4.0068948013720515e-16, -1.2440365198698484e-14, 3.3923298937104677e-13,
    -8.023536504699326e-12,  1.62764894918064e-10,   -2.7948629190182998e-09, 3.998839345472477e-08,
    -4.677128021500441e-07,  4.3669323246406834e-06, -3.157342540223125e-05,  0.00016977200713997844,
    -0.0006415390646406127,  0.0015636431645931661,  -0.002119794289479692,   0.0011434937743762545};
constexpr double kNear1Single[] = {-2.888239742927345e-13, 6.318830381885295e-12,   -1.1696773660853868e-10,
                                   1.8268163857172936e-09, -2.3521923498944098e-08, 2.4425224598445417e-07,
                                   -1.98909351563625e-06,  1.224217364834846e-05,   -5.4080032390889806e-05,
                                   0.0001586001679940988,  -0.0002697522746716356,  0.0001949893698589507};
constexpr double kNear1Double[] = {
    -3.1622441710487245e-19, 1.181146462725329e-17,  -3.898564466971905e-16,  1.1343125416873433e-14,
    -2.875548656182314e-13,  6.284733827929608e-12,  -1.1696932385905797e-10, 1.8268547695321333e-09,
    -2.3521922546334384e-08, 2.442522260752042e-07,  -1.98909351591414e-06,   1.224217365301561e-05,
    -5.408003239085507e-05,  0.00015860016799369874, -0.0002697522746716368,  0.00019498936985895625};
// Y0(x) - 2/pi log(x) J0(x), and (Y1(x) - 2/pi (log(x) J1(x) - 1 / x)) / x, in x^2 / 32 - 1
constexpr double kRest0Single[] = {-3.2435307605631007e-07, 5.374765862226448e-06, -7.27919751348068e-05,
                                   0.0008060917235185063,   -0.007025743406277194, 0.04636708783292951,
                                   -0.21895747013934655,    0.6721770666284324,    -1.0775477339586854,
                                   0.1441263251576888,      1.6470964788831157,    -0.8284358904127764,
                                   -0.38225065445951245};
constexpr double kRest0Double[] = {-8.840112096073101e-13, 2.6926938054524057e-11,  -7.13046146536789e-10,
                                   1.6390875014077404e-08, -3.2185078445935923e-07, 5.3213188103997145e-06,
                                   -7.279541882454115e-05, 0.000806158605961636,    -0.00702574105727097,
                                   0.046367047681375125,   -0.21895747096171628,    0.6721770783431679,
                                   -1.0775477338215995,    0.14412632369302475,     1.6470964788745466,
                                   -0.8284358903604587,    -0.382250654459425};
constexpr double kRest1Single[] = {2.4006020156533926e-07, -3.640601625548431e-06, 4.467181410945059e-05,
                                   -0.0004437727383283657, 0.0034224922502476512,  -0.019628779975515754,
                                   0.07854786878178699,    -0.19639839317335875,   0.2350720921217878,
                                   0.023367571255801564,   -0.24337743079389892,   0.07075985882764216};
constexpr double kRest1Double[] = {
    8.760001143977853e-13,  -2.499531546171249e-11, 6.169688029066965e-10, -1.3153147367094951e-08,
    2.3804930420514178e-07, -3.601000022590458e-06, 4.467433012646365e-05, -0.0004438173434420147,
    0.0034224907399188495,  -0.01962875683311711,   0.07854786922242532,   -0.19639839859930203,
    0.23507209206669755,    0.02336757172099348,    -0.24337743079193114,  0.07075985882118005};
// sqrt(x) sqrt(J^2 + Y^2) in 64 / x^2
constexpr double kModulus0Single[] = {1.5960146131354646e-07, -1.565835179386206e-06, 2.013616462003245e-05,
                                      -0.0007791807818911414, 0.797884560737824};
constexpr double kModulus0Double[] = {
    1.073993963231611e-10,  -8.090756389479378e-10,  2.874420910453955e-09, -6.6072271269779965e-09,
    1.1715856905458492e-08, -1.8966788112008228e-08, 3.384329750304953e-08, -7.930179520289782e-08,
    2.7813364692072313e-07, -1.6522546030701794e-06, 2.016443328912939e-05, -0.0007791841414080624,
    0.7978845608028654};
constexpr double kModulus1Single[] = {-2.1822003453784445e-07, 2.34102874430411e-06, -3.762951537072058e-05,
                                      0.0023375481224625267, 0.7978845608862561};
constexpr double kModulus1Double[] = {
    -1.2160372982715448e-10, 9.175467208955382e-10, -3.2680924947985936e-09, 7.544637368641164e-09,
    -1.3481674304664109e-08, 2.213160788090933e-08, -4.044741800583067e-08,  9.851420186953188e-08,
    -3.6807519852768416e-07, 2.451073934385576e-06, -3.766563958321413e-05,  0.0023375524242260377,
    0.7978845608028654};
// The angle of (J, Y) less x - (2 n + 1) pi / 4, times x / 8, in 64 / x^2
constexpr double kPhase0Single[] = {-8.91062382435642e-08, 7.205593988633669e-07, -6.376086915870534e-06,
                                    0.00012715427946195863, -0.015624999955793238};
constexpr double kPhase0Double[] = {-1.376943448196796e-10, 1.0252806333178493e-09,  -3.5776679419960352e-09,
                                    7.98689207401897e-09,   -1.3480545764846542e-08, 2.0094752016805358e-08,
                                    -3.157171593161072e-08, 6.218275857337119e-08,   -1.7488026636629725e-07,
                                    7.810888164105198e-07,  -6.395578304789895e-06,  0.0001271565755194815,
                                    -0.015624999999999997};
constexpr double kPhase1Single[] = {1.2057538832910542e-07, -1.0532984061445992e-06, 1.1294184920083417e-05,
                                    -0.0003204316497454036, 0.04687499994368889};
constexpr double kPhase1Double[] = {1.5577696584636038e-10,  -1.1616524439788342e-09, 4.063013186212995e-09,
                                    -9.105908587517475e-09,  1.547579483905148e-08,   -2.3358479274826113e-08,
                                    3.7505560185954216e-08,  -7.654443864802989e-08,  2.2814082433725464e-07,
                                    -1.1298148446715574e-06, 1.1318921953547415e-05,  -0.0003204345703109831,
                                    0.04687499999999999};

struct Zero {
  double high, low;
};
struct Table {
  std::span<const double> single_terms, double_terms;
  std::span<const double> terms(bool is_single) const { return is_single ? single_terms : double_terms; }
};
struct BesselOrder {
  bool is_odd;
  Zero zeros[2];
  Table near, rest, modulus, phase;
};
constexpr BesselOrder kBessel0{
    false,
    {{2.404825557695773, -1.176691651530894e-16}, {5.520078110286311, 8.088597146146722e-17}},
    {kNear0Single, kNear0Double},
    {kRest0Single, kRest0Double},
    {kModulus0Single, kModulus0Double},
    {kPhase0Single, kPhase0Double}};
constexpr BesselOrder kBessel1{
    true,
    {{3.8317059702075125, -1.5269184090088067e-16}, {7.015586669815619, -9.414165653410389e-17}},
    {kNear1Single, kNear1Double},
    {kRest1Single, kRest1Double},
    {kModulus1Single, kModulus1Double},
    {kPhase1Single, kPhase1Double}};

// An f64 that is not negative, and whether f32 is what its function is rounded to.
struct BesselArgument {
  Expr x;
  bool is_single;
  Expr centered() const { return fma(x * number(x, 1.0 / 32), x, number(x, -1)); }
};

// J(x) for x <= 8, over x for order 1. Its zeros are factors, so that values beside them are as precise as
// others.
Expr near_first_kind(const BesselArgument& argument, const BesselOrder& order) {
  const Expr& x = argument.x;
  Expr value = polynomial(argument.centered(), order.near.terms(argument.is_single));
  for (const Zero& zero : order.zeros) {
    Expr distance = x - number(x, zero.high);
    if (!argument.is_single) distance = distance - number(x, zero.low);
    value = value * (distance * (x + number(x, zero.high)));
  }
  return value;
}

// Y(x) for x <= 8; -infinity at 0.
Expr near_second_kind(const BesselArgument& argument, const BesselOrder& order) {
  const Expr &x = argument.x, factor = number(x, 2 / kPi);
  const Expr rest = polynomial(argument.centered(), order.rest.terms(argument.is_single));
  const Expr first = near_first_kind(argument, order), logarithm = log(x);
  if (!order.is_odd) return fma(factor * logarithm, first, rest);
  const Expr value = fma(factor * logarithm, first, rest) * x - factor / x;
  return select(equal(x, number(x, 0)), number(x, -special::kInfinity), value);
}

// modulus * cos(x - (2 n + 1) pi / 4 + phase) for J, the sine for Y; NaN at infinity, as in torch.
Expr far_bessel(const BesselArgument& argument, const BesselOrder& order, bool is_second) {
  const Expr &x = argument.x, inverse = number(x, kNearLimit) / x, square = inverse * inverse;
  const Expr phase = inverse * polynomial(square, order.phase.terms(argument.is_single));
  const Expr quarter = number(x, kPi / 4), high = x - quarter;
  const Expr low = ((x - high) - quarter) + (phase - number(x, kPiLow / 4));
  const Expr modulus = polynomial(square, order.modulus.terms(argument.is_single));
  const bool is_sine = is_second != order.is_odd;  // a quarter of a turn later for order 1
  const Expr wave = is_sine ? sin_of_sum(high, low) : cos_of_sum(high, low);
  const Expr size = modulus / unary(Unary::kSquareRoot, x);
  return (is_second && order.is_odd ? -size : size) * wave;
}

Expr first_kind64(const Expr& x, const BesselOrder& order, bool is_single) {
  const BesselArgument argument{absolute(x), is_single};
  const Expr is_far = less(number(x, kNearLimit), argument.x);
  Expr far = far_bessel(argument, order, false), near = near_first_kind(argument, order);
  if (order.is_odd) {
    far = select(less(x, number(x, 0)), -far, far);
    near = near * x;  // -0 for -0, as in torch
  }
  return rarely(is_far, far, near);
}

// NaN below 0
Expr second_kind64(const Expr& x, const BesselOrder& order, bool is_single) {
  const BesselArgument argument{x, is_single};
  const Expr is_far = less(number(x, kNearLimit), x);
  return rarely(is_far, far_bessel(argument, order, true), near_second_kind(argument, order));
}

template <Expr (*kOf)(const Expr&, const BesselOrder&, bool), const BesselOrder& kOrder>
Expr bessel(const Expr& x) {
  if (x->dtype == DType::kF64) return kOf(x, kOrder, false);
  return convert(x->dtype, kOf(convert(DType::kF64, x), kOrder, true));
}

}  // namespace
}  // namespace ingot::core::loops::math

namespace ingot::core::loops::functions {

constinit const Function bessel_j0 = {.name = "bessel_j0",
                                      .evaluate = special::bessel_j0,
                                      .expand = math::bessel<math::first_kind64, math::kBessel0>};
constinit const Function bessel_j1 = {.name = "bessel_j1",
                                      .evaluate = special::bessel_j1,
                                      .expand = math::bessel<math::first_kind64, math::kBessel1>};
constinit const Function bessel_y0 = {.name = "bessel_y0",
                                      .evaluate = special::bessel_y0,
                                      .expand = math::bessel<math::second_kind64, math::kBessel0>};
constinit const Function bessel_y1 = {.name = "bessel_y1",
                                      .evaluate = special::bessel_y1,
                                      .expand = math::bessel<math::second_kind64, math::kBessel1>};

}  // namespace ingot::core::loops::functions
