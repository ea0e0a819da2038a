// SPDX-License-Identifier: Apache-2.0
#include "tests/random/fill.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace ingot::core::random_graphs {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Extremes {
  double largest, smallest, denormal;
};

Extremes extremes_of(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return {std::numeric_limits<double>::max(), std::numeric_limits<double>::min(),
              std::numeric_limits<double>::denorm_min()};
    case DType::kF16:
      return {65504, std::ldexp(1.0, -14), std::ldexp(1.0, -24)};
    case DType::kBF16:
      return {std::ldexp(255.0, 120), std::ldexp(1.0, -126), std::ldexp(1.0, -133)};
    default:
      return {std::numeric_limits<float>::max(), std::numeric_limits<float>::min(),
              std::numeric_limits<float>::denorm_min()};
  }
}

double special(DType dtype, Random& random) {
  const Extremes extremes = extremes_of(dtype);
  const double values[] = {0,    -0.0,
                           1,    -1,
                           0.5,  kInfinity,
                           NAN,  extremes.largest,
                           2,    extremes.smallest,
                           100,  extremes.denormal,
                           1e-3, extremes.denormal * 3,
                           3,    std::sqrt(extremes.largest)};
  const double value = pick(random, values);
  return chance(random, 0.4) ? -value : value;
}

int64_t special_integer(DType dtype, Random& random) {
  if (dtype == DType::kBool) return number(random, 0, 1);
  const int bits = bit_width(dtype);
  const int64_t top = is_signed(dtype) ? bits - 1 : bits;
  const int64_t largest = top >= 63 ? INT64_MAX : (int64_t{1} << top) - 1;
  const int64_t values[] = {0, 1, -1, 2, largest, is_signed(dtype) ? -largest - 1 : largest - 1};
  return pick(random, values);
}

void write_one(const TensorView& view, std::span<const int64_t> index, const Fill& fill, Random& random) {
  if (!is_floating(view.dtype)) {
    const auto low = static_cast<int64_t>(fill.low), high = static_cast<int64_t>(fill.high);
    const bool is_special = fill.kind == Fill::Kind::kSpecial && chance(random, 0.3);
    const int64_t value = is_special ? special_integer(view.dtype, random) : number(random, low, high);
    return write_integer(view, index, view.dtype == DType::kBool ? value & 1 : value);
  }
  if (fill.kind == Fill::Kind::kWhole)
    return write_double(view, index, static_cast<double>(number(random, -4, 4)));
  const bool is_special = fill.kind == Fill::Kind::kSpecial && chance(random, 0.3);
  const double plain = std::uniform_real_distribution<double>(fill.low, fill.high)(random);
  write_double(view, index, is_special ? special(view.dtype, random) : plain);
}

bool step(std::vector<int64_t>& index, std::span<const int64_t> shape) {
  for (size_t dim = shape.size(); dim-- > 0;) {
    if (++index[dim] < shape[dim]) return true;
    index[dim] = 0;
  }
  return false;
}

void write_distinct(const TensorView& view, int64_t bound, size_t axis, Random& random) {
  std::vector<int64_t> shape = view.shape, values(static_cast<size_t>(bound));
  std::iota(values.begin(), values.end(), 0);
  const int64_t count = shape[axis];
  shape[axis] = 1;
  std::vector<int64_t> index(shape.size(), 0);
  do {
    std::ranges::shuffle(values, random);
    std::vector<int64_t> at = index;
    for (at[axis] = 0; at[axis] < count; ++at[axis])
      write_integer(view, at, values[static_cast<size_t>(at[axis])]);
  } while (step(index, shape));
}

}  // namespace

Tensor random_tensor(const TensorType& type, const SymbolValues& symbols, const Fill& fill, Random& random) {
  std::vector<int64_t> shape;
  for (const Dim& dim : type.shape) shape.push_back(evaluate(dim, symbols));
  Tensor tensor = make_tensor(type.dtype, shape);
  if (tensor.elements() == 0) return tensor;
  const TensorView view = tensor.view();
  const int64_t bound = evaluate(fill.bound, symbols);
  if (fill.kind == Fill::Kind::kDistinct) {
    write_distinct(view, bound, fill.axis, random);
    return tensor;
  }
  std::vector<int64_t> index(shape.size(), 0);
  do {
    if (fill.kind == Fill::Kind::kIndex) {
      write_integer(view, index, number(random, 0, bound - 1));
    } else {
      write_one(view, index, fill, random);
    }
  } while (step(index, shape));
  return tensor;
}

}  // namespace ingot::core::random_graphs
