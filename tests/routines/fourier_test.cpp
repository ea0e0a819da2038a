// SPDX-License-Identifier: Apache-2.0
// Fourier transforms against their definition in long double: all radices, numbers of lines around a vector's
// lanes, every position of the axis, one and several threads.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <random>

#include <fmt/core.h>

#include "routines/routines.h"
#include "support/error.h"
#include "support/thread_pool.h"

namespace ingot::core {
namespace {

using Wide = long double;
constexpr int64_t kLengths[] = {1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 16, 20, 27, 30, 49, 64, 77, 100, 128, 131};

struct Spectrum {
  Tensor re, im;
};

// The tensor as one line.
TensorView flat(Tensor tensor) {
  tensor.shape = {tensor.elements()};
  return tensor.view();
}
double at(const Tensor& tensor, int64_t index) { return read_double(flat(tensor), {{index}}); }
void put(const Tensor& tensor, int64_t index, double value) { write_double(flat(tensor), {{index}}, value); }

Tensor random_tensor(DType dtype, std::vector<int64_t> shape, uint32_t seed) {
  std::mt19937 random(seed);
  Tensor tensor = make_tensor(dtype, std::move(shape));
  for (int64_t i = 0; i < tensor.elements(); ++i)
    put(tensor, i, static_cast<double>(random() % 4096) / 1024 - 2);
  return tensor;
}

// exp(2 pi i k / n) for k < n.
std::vector<std::pair<Wide, Wide>> wide_roots(int64_t n) {
  std::vector<std::pair<Wide, Wide>> roots;
  for (int64_t k = 0; k < n; ++k) {
    const Wide angle = 2 * std::numbers::pi_v<Wide> * static_cast<Wide>(k) / static_cast<Wide>(n);
    roots.emplace_back(std::cos(angle), std::sin(angle));
  }
  return roots;
}

Tensor roots_of(DType dtype, int64_t n) {
  Tensor roots = make_tensor(dtype, {2, n});
  const auto wide = wide_roots(n);
  for (int64_t k = 0; k < n; ++k) {
    put(roots, k, static_cast<double>(wide[static_cast<size_t>(k)].first));
    put(roots, n + k, static_cast<double>(wide[static_cast<size_t>(k)].second));
  }
  return roots;
}

// Around the axis: the first number of line `line`, and the distance between two.
struct Place {
  int64_t first, distance;
};
Place place_of(int64_t line, int64_t extent, int64_t inner) {
  return {line / inner * extent * inner + line % inner, inner};
}

// All results of the line that `number(j)` gives.
template <typename Function>
std::vector<std::pair<Wide, Wide>> expected(int64_t n, int sign, const Function& number) {
  const auto roots = wide_roots(n);
  std::vector<std::pair<Wide, Wide>> results(static_cast<size_t>(n));
  for (int64_t j = 0; j < n; ++j) {
    const auto [a, b] = number(j);
    for (int64_t k = 0; k < n; ++k) {
      const auto [cosine, sine] = roots[static_cast<size_t>(j * k % n)];
      results[static_cast<size_t>(k)].first += a * cosine - sign * b * sine;
      results[static_cast<size_t>(k)].second += sign * a * sine + b * cosine;
    }
  }
  return results;
}

struct Case {
  DType dtype;
  int64_t outer, n, inner;
  int threads;

  std::vector<int64_t> shape(int64_t extent) const { return {outer, extent, inner}; }
  int64_t lines() const { return outer * inner; }
  double tolerance() const {
    const double epsilon = dtype == DType::kF32 ? 1.2e-7 : 2.3e-16;
    return 8 * epsilon * static_cast<double>(n);  // numbers are up to 2
  }
};

void run(void (*routine)(const RoutineCall&), const Case& test, std::vector<TensorView> inputs,
         std::vector<TensorView> outputs, std::vector<NamedValue> attributes) {
  ThreadPool pool(test.threads, 0);
  attributes.insert(attributes.begin(), {"axis", int64_t{1}});
  routine({.inputs = inputs,
           .outputs = outputs,
           .attributes = attributes,
           .pool = test.threads > 1 ? &pool : nullptr});
}

void expect_complex(const Case& test, bool inverse) {
  const Tensor re = random_tensor(test.dtype, test.shape(test.n), 1),
               im = random_tensor(test.dtype, test.shape(test.n), 2), roots = roots_of(test.dtype, test.n);
  const Spectrum result{make_tensor(test.dtype, re.shape), make_tensor(test.dtype, re.shape)};
  run(routines::fourier, test, {re.view(), im.view(), roots.view()}, {result.re.view(), result.im.view()},
      {{"inverse", inverse}, {"scale", 0.5}});
  for (int64_t line = 0; line < test.lines(); ++line) {
    const Place place = place_of(line, test.n, test.inner);
    const auto number = [&](int64_t j) {
      const int64_t index = place.first + j * place.distance;
      return std::pair<Wide, Wide>(at(re, index), at(im, index));
    };
    const auto results = expected(test.n, inverse ? 1 : -1, number);
    for (int64_t k = 0; k < test.n; ++k) {
      const auto [a, b] = results[static_cast<size_t>(k)];
      const int64_t index = place.first + k * place.distance;
      EXPECT_NEAR(at(result.re, index), static_cast<double>(a / 2), test.tolerance());
      EXPECT_NEAR(at(result.im, index), static_cast<double>(b / 2), test.tolerance());
    }
  }
}

void expect_real(const Case& test) {
  const Tensor x = random_tensor(test.dtype, test.shape(test.n), 1), roots = roots_of(test.dtype, test.n);
  const int64_t half = test.n / 2 + 1;
  const Spectrum result{make_tensor(test.dtype, test.shape(half)), make_tensor(test.dtype, test.shape(half))};
  run(routines::real_fourier, test, {x.view(), roots.view()}, {result.re.view(), result.im.view()},
      {{"scale", 1.0}});
  for (int64_t line = 0; line < test.lines(); ++line) {
    const Place from = place_of(line, test.n, test.inner), to = place_of(line, half, test.inner);
    const auto number = [&](int64_t j) {
      return std::pair<Wide, Wide>(at(x, from.first + j * from.distance), 0);
    };
    const auto results = expected(test.n, -1, number);
    for (int64_t k = 0; k < half; ++k) {
      const auto [a, b] = results[static_cast<size_t>(k)];
      EXPECT_NEAR(at(result.re, to.first + k * to.distance), static_cast<double>(a), test.tolerance());
      EXPECT_NEAR(at(result.im, to.first + k * to.distance), static_cast<double>(b), test.tolerance());
    }
  }
}

void expect_inverse_real(const Case& test) {
  const int64_t half = test.n / 2 + 1;
  const Tensor re = random_tensor(test.dtype, test.shape(half), 1),
               im = random_tensor(test.dtype, test.shape(half), 2), roots = roots_of(test.dtype, test.n);
  const Tensor result = make_tensor(test.dtype, test.shape(test.n));
  run(routines::inverse_real_fourier, test, {re.view(), im.view(), roots.view()}, {result.view()},
      {{"scale", 1.0}});
  for (int64_t line = 0; line < test.lines(); ++line) {
    const Place from = place_of(line, half, test.inner), to = place_of(line, test.n, test.inner);
    const auto number = [&](int64_t j) {
      const int64_t mirrored = std::min(j, test.n - j), index = from.first + mirrored * from.distance;
      const double sign = j == 0 || 2 * j == test.n ? 0 : j == mirrored ? 1 : -1;
      return std::pair<Wide, Wide>(at(re, index), sign * at(im, index));
    };
    const auto results = expected(test.n, 1, number);
    for (int64_t k = 0; k < test.n; ++k) {
      const auto a = static_cast<double>(results[static_cast<size_t>(k)].first);
      EXPECT_NEAR(at(result, to.first + k * to.distance), a, test.tolerance());
    }
  }
}

void expect_all(const Case& test) {
  SCOPED_TRACE(
      fmt::format("{} lines of {}, {} apart, {} threads", test.lines(), test.n, test.inner, test.threads));
  expect_complex(test, false);
  expect_complex(test, true);
  expect_real(test);
  expect_inverse_real(test);
}

TEST(Fourier, AllLengthsAreTheDefinition) {
  for (const DType dtype : {DType::kF32, DType::kF64}) {
    for (const int64_t n : kLengths) {
      expect_all({dtype, 9, n, 1, 1});
      expect_all({dtype, 1, n, 9, 1});
    }
  }
}

TEST(Fourier, AnyNumberOfLinesFillsTheLanes) {
  for (const int64_t lines : {0, 1, 2, 7, 8, 9, 15, 16, 17, 33}) {
    expect_all({DType::kF32, lines, 6, 1, 1});
    expect_all({DType::kF32, 1, 6, lines, 1});
    expect_all({DType::kF64, 2, 5, lines, 1});
    expect_all({DType::kF32, 3, 4, lines, 3});
  }
}

TEST(Fourier, ThreadsShareTheLines) { expect_all({DType::kF32, 200, 128, 1, 4}); }

// An engine file may claim anything.
TEST(Fourier, RejectsShapesThatDoNotFit) {
  const Tensor x = random_tensor(DType::kF32, {2, 8}, 1), eight = roots_of(DType::kF32, 8),
               six = roots_of(DType::kF32, 6), none = make_tensor(DType::kF32, {2, 0}),
               wide = roots_of(DType::kF64, 8);
  const Tensor half = make_tensor(DType::kF32, {2, 5});
  const auto call = [&](const Tensor& roots, const Tensor& to) {
    run(routines::real_fourier, {DType::kF32, 1, 8, 1, 1}, {x.view(), roots.view()}, {to.view(), to.view()},
        {{"scale", 1.0}});
  };
  EXPECT_NO_THROW(call(eight, half));
  EXPECT_THROW(call(six, half), UserError);
  EXPECT_THROW(call(none, half), UserError);
  EXPECT_THROW(call(wide, half), UserError);
  EXPECT_THROW(call(eight, x), UserError);
}

}  // namespace
}  // namespace ingot::core
