// SPDX-License-Identifier: Apache-2.0
// Sorting and selecting against std::stable_sort: lines of all lengths at which the method changes, of values
// that repeat, with both zeros, infinities and NaN.
#include <gtest/gtest.h>

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <random>

#include "routines/routine_table.h"
#include "support/thread_pool.h"

namespace ingot::core {
namespace {

// One element of `each` is special.
double special(std::mt19937& random, unsigned each) {
  constexpr double kSpecial[] = {0.0, -0.0, NAN, -NAN, INFINITY, -INFINITY, 1e-40, -1e-40};
  const auto number = static_cast<double>(static_cast<int64_t>(random() % 2000) - 1000);
  return random() % each == 0 ? kSpecial[random() % std::size(kSpecial)] : number / 8;
}

Tensor values_of(DType dtype, const std::vector<int64_t>& shape, std::mt19937& random, unsigned each = 4) {
  Tensor tensor = make_tensor(dtype, shape);
  const int64_t extent = shape[1], inner = shape[2];
  for (int64_t i = 0; i < shape[0] * extent * inner; ++i) {
    const std::vector<int64_t> at{i / (inner * extent), i / inner % extent, i % inner};
    if (is_floating(dtype)) {
      write_double(tensor.view(), at, special(random, each));
    } else {
      const auto bits = static_cast<int64_t>((uint64_t{random()} << 32) | random());
      write_integer(tensor.view(), at, random() % 2 == 0 ? bits : bits % 10);
    }
  }
  return tensor;
}

// The order of the line (line, :, column).
std::vector<int64_t> expected_order(const Tensor& x, int64_t line, int64_t column, bool descending) {
  std::vector<int64_t> order(static_cast<size_t>(x.shape[1]));
  std::iota(order.begin(), order.end(), 0);
  const auto before = [&](auto a, auto b) {
    if (descending) std::swap(a, b);
    return a < b || (a == a && b != b);
  };
  std::ranges::stable_sort(order, [&](int64_t a, int64_t b) {
    const std::vector<int64_t> left{line, a, column}, right{line, b, column};
    return is_floating(x.dtype) ? before(read_double(x.view(), left), read_double(x.view(), right))
                                : before(read_integer(x.view(), left), read_integer(x.view(), right));
  });
  return order;
}

using Position = std::vector<int64_t>;

void expect_same_element(const Tensor& a, const Position& at, const Tensor& b, const Position& place) {
  if (!is_floating(a.dtype)) {
    ASSERT_EQ(read_integer(a.view(), at), read_integer(b.view(), place));
    return;
  }
  const double value = read_double(a.view(), at), wanted = read_double(b.view(), place);
  ASSERT_TRUE((value == wanted && std::signbit(value) == std::signbit(wanted)) ||
              (value != value && wanted != wanted));
}

void expect_sorted(const Tensor& x, int64_t count, bool descending, ThreadPool* pool) {
  const bool whole = count == x.shape[1];
  const int64_t inner = x.shape[2];
  Tensor values = make_tensor(x.dtype, {x.shape[0], count, inner}),
         indices = make_tensor(DType::kI64, values.shape);
  const std::vector<TensorView> from{x.view()}, to{values.view(), indices.view()};
  const NamedValues attributes{{"axis", 1}, {whole ? "descending" : "largest", descending}};
  find_routine(whole ? "sort" : "top_k")
      ->run({.inputs = from, .outputs = to, .attributes = attributes, .pool = pool});
  for (int64_t line = 0; line < x.shape[0] * inner; ++line) {
    const auto order = expected_order(x, line / inner, line % inner, descending);
    for (int64_t i = 0; i < count; ++i) {
      const std::vector<int64_t> at{line / inner, i, line % inner},
          place{line / inner, order[static_cast<size_t>(i)], line % inner};
      ASSERT_EQ(read_integer(indices.view(), at), place[1])
          << name(x.dtype) << " " << x.shape[1] << " " << count;
      expect_same_element(values, at, x, place);
    }
  }
}

constexpr DType kDTypes[] = {DType::kF32, DType::kF64, DType::kF16, DType::kBF16, DType::kI8,
                             DType::kU8,  DType::kI16, DType::kI32, DType::kI64};

TEST(Sort, IsStableForEveryDTypeAndLength) {
  std::mt19937 random(5);
  ThreadPool pool(2, 0);
  for (const DType dtype : kDTypes) {
    for (const int64_t extent : {0, 1, 3, 100, 512, 1100}) {
      const Tensor x = values_of(dtype, {2, extent, 2}, random);
      for (const bool descending : {false, true}) {
        for (const int64_t count : {extent, extent / 2, extent / 50})
          expect_sorted(x, count, descending, &pool);
        expect_sorted(x, extent, descending, nullptr);
      }
    }
  }
}

// Keys and positions share 64 bits as long as they fit: 11 bits of positions, and those that the line's
// elements differ in.
TEST(Sort, OrdersIntegersOfEveryWidth) {
  std::mt19937 random(9);
  constexpr int64_t kExtent = 1100, kLeast = std::numeric_limits<int64_t>::min();
  for (const int width : {0, 1, 10, 40, 52, 53, 54, 63, 64}) {
    for (const int64_t smallest : {kLeast, int64_t{-7}, int64_t{1} << 62}) {
      Tensor x = make_tensor(DType::kI64, {2, kExtent, 1});
      for (int64_t i = 0; i < 2 * kExtent; ++i) {
        const uint64_t bits = uint64_t{random()} << 32 | random(),
                       offset = width == 0 ? 0 : bits >> (64 - width);
        write_integer(x.view(), Position{i / kExtent, i % kExtent, 0},
                      static_cast<int64_t>(static_cast<uint64_t>(smallest) + offset));
      }
      for (const bool descending : {false, true}) {
        for (const int64_t count : {kExtent, kExtent / 2, kExtent / 50})
          expect_sorted(x, count, descending, nullptr);
      }
    }
  }
}

// Few of many elements: most are compared with the last one that is kept, by vectors. Lines of NaN alone, of
// special values alone, and where each element precedes those before it.
TEST(Sort, FindsTheFirstOfManyElements) {
  std::mt19937 random(7);
  for (const DType dtype : kDTypes) {
    for (const int64_t inner : {1, 3}) {
      for (const int64_t extent : {17, 64, 1000, 3001}) {
        Tensor x = values_of(dtype, {3, extent, inner}, random, 700);
        for (int64_t i = 0; i < extent * inner; ++i) {
          const std::vector<int64_t> rising{1, i / inner, i % inner}, last{2, i / inner, i % inner};
          if (!is_floating(dtype)) continue;
          write_double(x.view(), rising, static_cast<double>(i));
          write_double(x.view(), last, i % 7 == 0 ? special(random, 1) : NAN);
        }
        for (const bool descending : {false, true}) {
          for (const int64_t count : {int64_t{1}, int64_t{2}, extent / 17, extent / 100})
            expect_sorted(x, count, descending, nullptr);
        }
      }
    }
  }
}

// The first element of the line that is NaN.
std::optional<int64_t> first_nan(const Tensor& x, int64_t line, int64_t column) {
  for (int64_t i = 0; is_floating(x.dtype) && i < x.shape[1]; ++i) {
    if (std::isnan(read_double(x.view(), std::vector<int64_t>{line, i, column}))) return i;
  }
  return std::nullopt;
}

void expect_selected(const Tensor& x, std::optional<int64_t> rank, ThreadPool* pool) {
  Tensor values = make_tensor(x.dtype, {x.shape[0], 1, 2}), indices = make_tensor(DType::kI64, values.shape);
  const std::vector<TensorView> from{x.view()}, to{values.view(), indices.view()};
  NamedValues attributes{{"axis", 1}};
  if (rank) attributes.push_back({"rank", *rank});
  find_routine(rank ? "kth_value" : "median")
      ->run({.inputs = from, .outputs = to, .attributes = attributes, .pool = pool});
  const int64_t middle = (x.shape[1] - 1) / 2;
  for (int64_t line = 0; line < x.shape[0] * 2; ++line) {
    const auto order = expected_order(x, line / 2, line % 2, false);
    int64_t expected = order[static_cast<size_t>(rank.value_or(middle))];
    if (!rank) expected = first_nan(x, line / 2, line % 2).value_or(expected);
    const std::vector<int64_t> at{line / 2, 0, line % 2}, place{line / 2, expected, line % 2};
    ASSERT_EQ(read_integer(indices.view(), at), expected) << name(x.dtype) << " " << x.shape[1];
    expect_same_element(values, at, x, place);
  }
}

TEST(Select, TakesWhatSortingPutsThere) {
  std::mt19937 random(6);
  ThreadPool pool(2, 0);
  for (const DType dtype : kDTypes) {
    for (const int64_t extent : {1, 2, 3, 7, 100, 1101}) {
      const Tensor x = values_of(dtype, {2, extent, 2}, random);
      expect_selected(x, std::nullopt, &pool);
      for (const int64_t rank : {int64_t{0}, extent / 3, extent - 1}) expect_selected(x, rank, nullptr);
    }
  }
}

}  // namespace
}  // namespace ingot::core
