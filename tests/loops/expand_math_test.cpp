// SPDX-License-Identifier: Apache-2.0
// Expanded functions, run by the interpreter, against the C library at twice the precision.
#include "loops/expand_math.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "loops/rewrite.h"
#include "tests/loops/kernels.h"

namespace ingot::core::loops {
namespace {

using test::buffer;
using test::symbol;
using Reference = long double (*)(long double);

struct Accuracy {
  const Function& function;
  Reference reference;
  double low, high;     // range of dense samples
  double ulp32, ulp64;  // allowed errors
};

const Accuracy kAccuracies[] = {
    {functions::exp, [](long double x) { return std::exp(x); }, -105, 90, 1.5, 1.5},
    {functions::exp2, [](long double x) { return std::exp2(x); }, -152, 130, 1.5, 1.5},
    {functions::expm1, [](long double x) { return std::expm1(x); }, -20, 90, 2, 2},
    {functions::log, [](long double x) { return std::log(x); }, 0, 10, 2, 2},
    {functions::log1p, [](long double x) { return std::log1p(x); }, -1, 10, 2.5, 2.5},
    {functions::log2, [](long double x) { return std::log2(x); }, 0, 10, 1, 2},
    {functions::log10, [](long double x) { return std::log10(x); }, 0, 10, 1, 1},
    {functions::sin, [](long double x) { return std::sin(x); }, -100, 100, 2, 2},
    {functions::cos, [](long double x) { return std::cos(x); }, -100, 100, 2, 2},
    {functions::tan, [](long double x) { return std::tan(x); }, -100, 100, 2, 4},
    {functions::asin, [](long double x) { return std::asin(x); }, -1, 1, 1, 4},
    {functions::acos, [](long double x) { return std::acos(x); }, -1, 1, 1, 4},
    {functions::atan, [](long double x) { return std::atan(x); }, -10, 10, 1, 4},
    {functions::sinh, [](long double x) { return std::sinh(x); }, -90, 90, 1, 5},
    {functions::cosh, [](long double x) { return std::cosh(x); }, -90, 90, 1, 5},
    {functions::tanh, [](long double x) { return std::tanh(x); }, -10, 10, 3, 3},
    {functions::erf, [](long double x) { return std::erf(x); }, -4.5, 4.5, 2, 3},
    {functions::erfc, [](long double x) { return std::erfc(x); }, -4.5, 11, 1, 8},
    {functions::sigmoid, [](long double x) { return 1 / (1 + std::exp(-x)); }, -100, 100, 3, 3},
    {functions::reciprocal_square_root, [](long double x) { return 1 / std::sqrt(x); }, 0, 100, 1.5, 1.5},
};

template <typename Real>
std::vector<Real> samples(double low, double high) {
  std::mt19937_64 random(7);
  std::vector<Real> values = {0,
                              -Real(0),
                              1,
                              -1,
                              Real(0.5),
                              INFINITY,
                              -INFINITY,
                              NAN,
                              std::numeric_limits<Real>::min(),
                              std::numeric_limits<Real>::denorm_min(),
                              -std::numeric_limits<Real>::denorm_min(),
                              std::numeric_limits<Real>::max(),
                              std::numeric_limits<Real>::lowest()};
  std::uniform_real_distribution<double> uniform(low, high);
  for (int i = 0; i < 20000; ++i) values.push_back(static_cast<Real>(uniform(random)));
  const int largest = sizeof(Real) == 4 ? 127 : 1023;
  std::uniform_real_distribution<double> exponent(sizeof(Real) == 4 ? -149 : -1074, largest);
  for (int i = 0; i < 20000; ++i) {
    const double value = std::exp2(exponent(random));
    values.push_back(static_cast<Real>(i % 2 == 0 ? value : -value));
  }
  return values;
}

// Distance in units of the last place of the right result.
template <typename Real>
double error_in_ulp(Real got, long double right) {
  const Real rounded = static_cast<Real>(right);
  if (std::isnan(rounded) || std::isnan(got)) return std::isnan(rounded) && std::isnan(got) ? 0 : INFINITY;
  if (got == rounded) return got == 0 && std::signbit(got) != std::signbit(rounded) ? INFINITY : 0;
  if (std::isinf(rounded) || std::isinf(got)) {
    // One of them overflowed: near the largest number that is a rounding error.
    const bool near = std::fabs(right) >= static_cast<long double>(std::numeric_limits<Real>::max()) *
                                              (1 - 4 * std::numeric_limits<Real>::epsilon());
    return near && std::signbit(got) == std::signbit(rounded) ? 1 : INFINITY;
  }
  int exponent = 0;
  std::frexp(rounded, &exponent);
  const int digits = std::numeric_limits<Real>::digits, smallest = std::numeric_limits<Real>::min_exponent;
  return static_cast<double>(std::fabs(static_cast<long double>(got) - right) /
                             std::ldexp(1.0L, std::max(exponent, smallest) - digits));
}

template <typename Real>
std::vector<Real> expanded(const Function& function, const std::vector<Real>& inputs) {
  const DType dtype = sizeof(Real) == 4 ? DType::kF32 : DType::kF64;
  const auto count = static_cast<int64_t>(inputs.size());
  const Kernel kernel = expand_math(test::function_kernel(function, dtype, {symbol("N")}));
  std::vector<Tensor> tensors = {make_tensor(dtype, {count}), make_tensor(dtype, {count})};
  std::copy(inputs.begin(), inputs.end(), reinterpret_cast<Real*>(tensors[0].data.get()));
  EXPECT_EQ(test::run(kernel, tensors, {{"N", count}}), KernelStatus::kOk);
  const auto* results = reinterpret_cast<const Real*>(tensors[1].data.get());
  return {results, results + count};
}

template <typename Real>
void check(const Accuracy& row, double allowed) {
  const std::vector<Real> inputs = samples<Real>(row.low, row.high);
  const std::vector<Real> results = expanded(row.function, inputs);
  double worst = 0;
  size_t where = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const double error = error_in_ulp(results[i], row.reference(inputs[i]));
    if (error > worst) worst = error, where = i;
  }
  EXPECT_LE(worst, allowed) << row.function.name << "(" << inputs[where] << ") = " << results[where]
                            << ", expected " << static_cast<Real>(row.reference(inputs[where]));
  ::testing::Test::RecordProperty(std::string(row.function.name), std::to_string(worst));
}

TEST(ExpandMath, FloatIsRightToTheLastPlaces) {
  for (const Accuracy& row : kAccuracies) check<float>(row, row.ulp32);
}

TEST(ExpandMath, DoubleIsRightToTheLastPlaces) {
  for (const Accuracy& row : kAccuracies) check<double>(row, row.ulp64);
}

// Where the distribution is near zero, its absolute error counts: 1 + erf has no more.
template <typename Real>
void check_gelu(double allowed) {
  const std::vector<Real> inputs = samples<Real>(-8, 8);
  const std::vector<Real> results = expanded(functions::gelu, inputs);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto x = static_cast<long double>(inputs[i]);
    const long double right = x / 2 * std::erfc(-x * std::sqrt(0.5L));
    if (std::isfinite(right))
      EXPECT_LE(std::fabs(results[i] - right),
                allowed * std::fabs(x) + std::numeric_limits<Real>::denorm_min())
          << x;
    else
      EXPECT_LT(error_in_ulp(results[i], right), 1) << inputs[i];
  }
}

TEST(ExpandMath, GeluIsAsRightAsItsDistribution) {
  check_gelu<float>(3e-7);
  check_gelu<double>(6e-16);
}

TEST(ExpandMath, LeavesNoFunction) {
  for (const Function* function : all_functions()) {
    const Kernel kernel = expand_math(test::function_kernel(*function, DType::kF32, {4}));
    visit(kernel.stages[0].value,
          [&](const Expr& node) { EXPECT_NE(node->kind, ExprNode::Kind::kFunction) << to_string(kernel); });
  }
}

// Special functions, whose reference is right to 1e-13 or so. Beside their zeros absolute errors count, and
// where their values change faster than arguments are rounded, those of the argument.
struct SpecialAccuracy {
  const Function& function;
  double low, high;
  double error64 = 1e-12;
};
const SpecialAccuracy kSpecialAccuracies[] = {
    {functions::bessel_i0, -20, 20},        {functions::bessel_i1, -20, 20},
    {functions::bessel_j0, -60, 60},        {functions::bessel_j1, -60, 60},
    {functions::bessel_y0, 0, 60},          {functions::bessel_y1, 0, 60},
    {functions::digamma, -5, 20},           {functions::inverse_erf, -1, 1},
    {functions::inverse_normal, 0, 1},      {functions::log_gamma, -5, 20},
    {functions::scaled_bessel_i0, -50, 50}, {functions::scaled_bessel_i1, -50, 50},
    {functions::scaled_erfc, -5, 40},
};

template <typename Real>
void check_special(const SpecialAccuracy& row, double allowed) {
  const std::vector<Real> inputs = samples<Real>(row.low, row.high);
  const std::vector<Real> results = expanded(row.function, inputs);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const double x = inputs[i], right = row.function.evaluate(x), got = results[i];
    if (!std::isfinite(static_cast<Real>(right))) {
      EXPECT_TRUE(got == static_cast<Real>(right) || (std::isnan(got) && std::isnan(right)))
          << row.function.name << "(" << x << ") = " << got << ", expected " << right;
      continue;
    }
    const double beside = row.function.evaluate(std::nextafter(inputs[i], Real(0)));
    const double conditioned = std::isfinite(beside) ? std::fabs(beside - right) : 0;
    EXPECT_LE(std::fabs(got - right), allowed * std::max(1.0, std::fabs(right)) + conditioned)
        << row.function.name << "(" << x << ") = " << got << ", expected " << right;
  }
}

TEST(ExpandMath, SpecialFunctions) {
  for (const SpecialAccuracy& row : kSpecialAccuracies) {
    check_special<float>(row, 3e-7);
    check_special<double>(row, row.error64);
  }
}

// gelu has a test of its own.
TEST(ExpandMath, EachFunctionHasABound) {
  for (const Function* function : all_functions()) {
    const bool has_row =
        std::ranges::any_of(kAccuracies, [&](const Accuracy& row) { return &row.function == function; }) ||
        std::ranges::any_of(kSpecialAccuracies,
                            [&](const SpecialAccuracy& row) { return &row.function == function; });
    EXPECT_TRUE(has_row || function == &functions::gelu) << function->name;
  }
}

template <typename Real>
void check_binary(Binary op, long double (*reference)(long double, long double), double allowed) {
  const DType dtype = sizeof(Real) == 4 ? DType::kF32 : DType::kF64;
  std::vector<Real> special = {0,          -Real(0),  1,        -1,        2,   -2,         3,   Real(0.5),
                               Real(-0.5), Real(1.5), INFINITY, -INFINITY, NAN, Real(1e-3), 1000};
  std::vector<std::pair<Real, Real>> pairs;
  for (const Real a : special) {
    for (const Real b : special) pairs.emplace_back(a, b);
  }
  std::mt19937_64 random(11);
  std::uniform_real_distribution<double> exponent(-8, 8), other(-30, 30);
  for (int i = 0; i < 20000; ++i)
    pairs.emplace_back(static_cast<Real>(std::exp2(exponent(random))), static_cast<Real>(other(random)));
  const auto count = static_cast<int64_t>(pairs.size());
  const Dim i = symbol("i");
  Kernel kernel{.name = "binary",
                .buffers = {buffer("x", dtype, {count}), buffer("y", dtype, {count}),
                            buffer("z", dtype, {count}, Access::kWrite)}};
  kernel.parallel = {{"i", count}};
  kernel.stages = {
      {.name = "z", .value = binary(op, load(0, dtype, {i}), load(1, dtype, {i})), .store = Store{2, {i}}}};
  std::vector<Tensor> tensors = {make_tensor(dtype, {count}), make_tensor(dtype, {count}),
                                 make_tensor(dtype, {count})};
  for (size_t k = 0; k < pairs.size(); ++k) {
    reinterpret_cast<Real*>(tensors[0].data.get())[k] = pairs[k].first;
    reinterpret_cast<Real*>(tensors[1].data.get())[k] = pairs[k].second;
  }
  test::run(expand_math(kernel), tensors);
  for (size_t k = 0; k < pairs.size(); ++k) {
    const Real got = reinterpret_cast<const Real*>(tensors[2].data.get())[k];
    const long double right = reference(pairs[k].first, pairs[k].second);
    ASSERT_LE(error_in_ulp(got, right), allowed)
        << pairs[k].first << ", " << pairs[k].second << ": " << got << ", expected " << right;
  }
}

TEST(ExpandMath, PowersAndAngles) {
  check_binary<float>(Binary::kPower, [](long double x, long double y) { return std::pow(x, y); }, 1);
  check_binary<double>(Binary::kPower, [](long double x, long double y) { return std::pow(x, y); }, 4);
  check_binary<float>(Binary::kAtan2, [](long double y, long double x) { return std::atan2(y, x); }, 1);
  check_binary<double>(Binary::kAtan2, [](long double y, long double x) { return std::atan2(y, x); }, 4);
}

}  // namespace
}  // namespace ingot::core::loops
