// SPDX-License-Identifier: Apache-2.0
// exp(x) = exp(x / 2^s)^(2^s), by Taylor polynomials of degrees 4, 8, 12 and 18 in 2, 3, 4 and 5 products
// (Bader, Blanes and Casas: Computing the matrix exponential with an optimized Taylor polynomial
// approximation, 2019). Unlike Pade's fractions they solve no equations.
#include <array>
#include <cmath>
#include <limits>
#include <span>

#include "routines/matrices.h"

namespace ingot::core::routines {
namespace {

template <typename Given>
Given product(const Given& a, const Given& b) {
  Given result = Given::Zero(a.rows(), b.cols());
  add_product<Given>(result, 1, {a}, {b});
  return result;
}

// The sum of the powers of a matrix, each times its factor; the identity comes first.
template <typename Given, size_t kCount>
Given sum_of(const double (&factors)[kCount + 1], const std::array<const Given*, kCount>& powers) {
  Given sum = Given::Zero(powers[0]->rows(), powers[0]->cols());
  sum.diagonal().setConstant(factors[0]);
  for (size_t i = 0; i < kCount; ++i) {
    if (factors[i + 1] != 0) sum += factors[i + 1] * *powers[i];
  }
  return sum;
}

template <typename Given>
Given taylor4(const Given& x) {
  const Given square = product<Given>(x, x);
  const Given factor = sum_of<Given, 2>({1.0 / 2, 1.0 / 6, 1.0 / 24}, {&x, &square});
  return sum_of<Given, 1>({1, 1}, {&x}) + product<Given>(square, factor);
}

template <typename Given>
Given taylor8(const Given& x) {
  const Given x2 = product<Given>(x, x);
  const Given x4 =
      product<Given>(x2, sum_of<Given, 2>({0, 0.1083646567852278, 0.02709116419630695}, {&x, &x2}));
  const Given first = sum_of<Given, 2>({0, 2.0 / 3, 1}, {&x2, &x4});
  const Given second = sum_of<Given, 3>(
      {0.5467614579707241, 0.16112557339541758, 0.014090917158378208, 0.033792797010870505}, {&x, &x2, &x4});
  return sum_of<Given, 2>({1, 1, 0.13549236135285064}, {&x, &x2}) + product<Given>(first, second);
}

template <typename Given>
Given taylor12(const Given& x) {
  const Given x2 = product<Given>(x, x), x3 = product<Given>(x2, x);
  const auto sum = [&](const double(&factors)[4]) { return sum_of<Given, 3>(factors, {&x, &x2, &x3}); };
  const Given last =
      sum({-2.086132e-13, -0.13181061013830184, -0.020278555405892591, -0.0067595184686308636});
  const Given x6 =
      sum({0.18188869982170435, 0.055027984399253991, 0.093515907705354150, 0.0061070052889805823}) +
      product<Given>(last, last);
  const Given factor =
      sum({5.3159789575987126, 1.1992679041713223, 0.01179296240992997, 0.01108844528519168}) + x6;
  return sum({9.0198e-16, 0.46932117595418237, -0.20099424927047284, -0.0462394613406307174}) +
         product<Given>(factor, x6);
}

template <typename Given>
Given taylor18(const Given& x) {
  const Given x2 = product<Given>(x, x), x3 = product<Given>(x2, x), x6 = product<Given>(x3, x3);
  const auto sum = [&](const double(&factors)[5]) { return sum_of<Given, 4>(factors, {&x, &x2, &x3, &x6}); };
  const Given first = sum({0, -0.10036558103014462, -0.0080292464824115696, -0.00089213849804572999, 0});
  const Given second = sum({0, 0, -0.092336461936711856, -0.016936493900208172, -1.4008679818203610e-05});
  const Given x9 = sum({-0.090431683239081058, -0.067640451907138188, 0.067596130177045967,
                        0.029555257042931552, -1.3918025751606070e-05}) +
                   product<Given>(first, second);
  const Given factor = sum({-10.967639605296206, 1.6801581387890620, 0.057177984647886551,
                            -0.0069821012248805208, 3.3497501708607047e-05}) +
                       x9;
  return sum({0, 0.39784974949964508, 1.3678377846041172, 0.49828962252538267, -0.00063789819459472328}) +
         product<Given>(factor, x9);
}

// The largest norm for which the first term that a polynomial lacks is at most `error`.
struct Degree {
  int value;
  double limit_with(double error) const {
    return std::pow(error * std::tgamma(value + 2), 1.0 / (value + 1));
  }
};
constexpr Degree kDegrees[] = {{4}, {8}, {12}, {18}};
constexpr double kErrorOfSingle = 0x1p-28, kErrorOfDouble = 0x1p-55;

template <typename Given>
Given polynomial_of(const Given& x, int degree) {
  switch (degree) {
    case 4:
      return taylor4(x);
    case 8:
      return taylor8(x);
    case 12:
      return taylor12(x);
    default:
      return taylor18(x);
  }
}

template <typename Given>
Given exponential_of(const Given& x, double error) {
  const double norm = x.cwiseAbs().colwise().sum().maxCoeff();
  if (!std::isfinite(norm))
    return Given::Constant(x.rows(), x.cols(), std::numeric_limits<double>::quiet_NaN());
  for (const Degree& degree : kDegrees) {
    if (norm <= degree.limit_with(error)) return polynomial_of<Given>(x, degree.value);
  }
  const double largest = std::end(kDegrees)[-1].limit_with(error);
  const int squarings = std::max(0, std::ilogb(norm / largest) + 1);
  Given result = taylor18<Given>(x * std::ldexp(1.0, -squarings));
  for (int i = 0; i < squarings; ++i) result = product<Given>(result, result);
  return result;
}

template <typename Given>
void run_matrix_exponential(const RoutineCall& call) {
  require_matrices(call, kParts<Given>, kParts<Given>);
  const TensorView& x = call.inputs[0];
  const Matrices sizes = matrices_of(x);
  require_fit(are_batches_of(call.inputs, x, sizes.rows, sizes.rows) &&
                  are_batches_of(call.outputs, x, sizes.rows, sizes.rows) && sizes.rows == sizes.columns,
              "matrix_exponential");
  if (sizes.rows == 0) return;
  const double error = x.dtype == DType::kF32 ? kErrorOfSingle : kErrorOfDouble;
  for_each_matrix(call, sizes.count, sizes.rows * sizes.rows, [&](int64_t i) {
    write_matrix<Given>(call.outputs, i, exponential_of<Given>(read_matrix<Given>(call.inputs, i), error));
  });
}

}  // namespace

void matrix_exponential(const RoutineCall& call) { run_matrix_exponential<Matrix>(call); }
void complex_matrix_exponential(const RoutineCall& call) { run_matrix_exponential<ComplexMatrix>(call); }

}  // namespace ingot::core::routines
