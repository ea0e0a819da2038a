// SPDX-License-Identifier: Apache-2.0
#include "tests/backends/cpu/compile/special_values.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include <fmt/core.h>

namespace ingot::core::cpu::test {
namespace {

constexpr int64_t kWidestVector = 16;
constexpr double kLarge = 100;

struct Extremes {
  double largest, smallest_normal, smallest;
};

Extremes extremes_of(DType dtype) {
  using Double = std::numeric_limits<double>;
  using Float = std::numeric_limits<float>;
  switch (dtype) {
    case DType::kF64:
      return {Double::max(), Double::min(), Double::denorm_min()};
    case DType::kF16:
      return {65504, 0x1p-14, 0x1p-24};
    case DType::kBF16:
      return {0x1.fep127, 0x1p-126, 0x1p-133};
    default:
      return {Float::max(), Float::min(), Float::denorm_min()};
  }
}

std::vector<double> special_integers(DType dtype) {
  const int width = bit_width(dtype);
  if (dtype == DType::kBool) return {0, 1};
  if (!is_signed(dtype)) return {0, 1, 2, 3, 7, 8, 100, std::ldexp(1, width - 1), std::ldexp(1, width) - 1};
  const double top = std::ldexp(1, width - 1);
  return {0, 1, -1, 2, -2, 3, -3, 7, -7, 8, 100, -100, -top, 1 - top, top - 1};
}

}  // namespace

std::vector<double> special_values(DType dtype) {
  if (!is_floating(dtype)) return special_integers(dtype);
  const Extremes extremes = extremes_of(dtype);
  std::vector<double> values{std::numeric_limits<double>::quiet_NaN()};
  for (const double value : {0.0,
                             extremes.smallest,
                             3 * extremes.smallest,
                             extremes.smallest_normal,
                             1e-20,
                             1e-3,
                             0.5,
                             1.0,
                             1.5,
                             2.0,
                             2.5,
                             3.0,
                             6.5,
                             20.0,
                             88.8,
                             104.5,
                             1e5,
                             1e19,
                             extremes.largest,
                             std::numeric_limits<double>::infinity()}) {
    values.push_back(value);
    values.push_back(-value);
  }
  return values;
}

namespace {

int64_t round_up(int64_t count) { return (count + kWidestVector - 1) / kWidestVector * kWidestVector; }

void write(const Tensor& tensor, int64_t i, double value) {
  const TensorView flat{tensor.data.get(), tensor.dtype, {tensor.elements()}, {1}};
  if (is_floating(tensor.dtype)) {
    write_double(flat, {&i, 1}, value);
  } else {
    write_integer(flat, {&i, 1}, static_cast<int64_t>(std::fmin(value, 0x1.fffffffffffffp62)));
  }
}

// Row 2 k has special value k once, row 2 k + 1 only that. Of large ones, products and sums depend on their
// order: they are left out.
void fill_rows(const Tensor& tensor, std::vector<double> values, int64_t number) {
  std::erase_if(values, [](double value) { return std::isfinite(value) && std::fabs(value) > kLarge; });
  const int64_t rows = tensor.shape[0], columns = tensor.shape[1];
  const auto distinct = static_cast<int64_t>(values.size());
  for (int64_t row = 0; row < rows; ++row) {
    const double special = values[static_cast<size_t>((row / 2 + number) % distinct)];
    for (int64_t column = 0; column < columns; ++column) {
      const int64_t whole = (row + 3 * column + 5 * number) % 7 - (is_signed(tensor.dtype) ? 3 : 0);
      const bool is_special = row % 2 == 1 || column == (row / 2) % columns;
      write(tensor, row * columns + column, is_special ? special : static_cast<double>(whole));
    }
  }
}

}  // namespace

int64_t special_pairs(DType dtype) {
  const auto distinct = static_cast<int64_t>(special_values(dtype).size());
  return round_up(distinct * distinct);
}

int64_t special_rows(DType dtype) {
  return round_up(2 * static_cast<int64_t>(special_values(dtype).size()) + 1);
}

Tensor special_tensor(DType dtype, const std::vector<int64_t>& shape, size_t number) {
  Tensor tensor = make_tensor(dtype, shape);
  const std::vector<double> values = special_values(dtype);
  const auto distinct = static_cast<int64_t>(values.size());
  if (shape.size() == 2 && shape[1] > 1) {
    fill_rows(tensor, values, static_cast<int64_t>(number));
    return tensor;
  }
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    const int64_t row = i / distinct, column = i % distinct;
    const int64_t pick = number == 0   ? column
                         : number == 1 ? row
                                       : row * 3 + column * static_cast<int64_t>(number + 3);
    write(tensor, i, values[static_cast<size_t>(pick % distinct)]);
  }
  return tensor;
}

std::string first_difference(const Tensor& expected, const Tensor& got, double relative) {
  const auto size = static_cast<int64_t>(bit_width(expected.dtype)) / 8;
  const auto element = [&](const Tensor& tensor, int64_t i) {
    return read_double({tensor.data.get(), tensor.dtype, {tensor.elements()}, {1}}, {&i, 1});
  };
  for (int64_t i = 0; i < expected.elements(); ++i) {
    const int64_t at = i * size;
    if (std::memcmp(expected.data.get() + at, got.data.get() + at, static_cast<size_t>(size)) == 0) continue;
    const double a = element(expected, i), b = element(got, i);
    if (is_floating(expected.dtype)) {
      if (std::isnan(a) && std::isnan(b)) continue;
      const bool finite = std::isfinite(a) && std::isfinite(b);
      if (finite && relative > 0 && std::fabs(a - b) <= relative * std::max(std::fabs(a), 1.0)) continue;
    }
    return fmt::format("element {} is {:.9g} for {:.9g}", i, b, a);
  }
  return "";
}

}  // namespace ingot::core::cpu::test
