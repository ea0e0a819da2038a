// SPDX-License-Identifier: Apache-2.0
// Scatters that combine, against a loop over the source: every axis, indices for each element or for whole
// rows, sources smaller than the target, native and narrow dtypes, with and without threads.
#include <gtest/gtest.h>

#include <fmt/core.h>

#include <random>

#include "routines/routine_table.h"
#include "support/error.h"
#include "support/thread_pool.h"

namespace ingot::core {
namespace {

using Sizes = std::vector<int64_t>;

template <typename Visit>
void for_each_place(const Sizes& shape, const Visit& visit) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  for (int64_t i = 0; i < count; ++i) {
    Sizes place(shape.size());
    int64_t rest = i;
    for (size_t dim = shape.size(); dim-- > 0; rest /= shape[dim]) place[dim] = rest % shape[dim];
    visit(place);
  }
}

// Small whole numbers, whose sums and products are exact.
Tensor numbers(DType dtype, const Sizes& shape, int64_t low, int64_t high, std::mt19937& random) {
  Tensor tensor = make_tensor(dtype, shape);
  for_each_place(shape, [&](const Sizes& place) {
    const auto value = low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
    is_floating(dtype) ? write_double(tensor.view(), place, static_cast<double>(value))
                       : write_integer(tensor.view(), place, value);
  });
  return tensor;
}

double combined(std::string_view reduce, double a, double b) {
  if (reduce == "prod") return a * b;
  if (reduce == "sum") return a + b;
  return (reduce == "amax") == (a < b) ? b : a;
}

double value_at(const Tensor& tensor, const Sizes& place) {
  return is_floating(tensor.dtype) ? read_double(tensor.view(), place)
                                   : static_cast<double>(read_integer(tensor.view(), place));
}

struct Scatter {
  Sizes x, indices, source;
  size_t axis;
};

void expect_combined(const Scatter& shapes, DType dtype, DType index_dtype, std::string_view reduce,
                     ThreadPool* pool) {
  std::mt19937 random(11);
  const Tensor x = numbers(dtype, shapes.x, -2, 2, random),
               source = numbers(dtype, shapes.source, -1, 2, random);
  const Tensor indices = numbers(index_dtype, shapes.indices, 0, shapes.x[shapes.axis] - 1, random);
  Tensor result = make_tensor(dtype, shapes.x), expected = numbers(dtype, shapes.x, 0, 0, random);
  for_each_place(shapes.x, [&](const Sizes& place) {
    is_floating(dtype) ? write_double(expected.view(), place, value_at(x, place))
                       : write_integer(expected.view(), place, read_integer(x.view(), place));
  });
  for_each_place(shapes.source, [&](const Sizes& place) {
    Sizes at = place, to = place;
    for (size_t dim = 0; dim < at.size(); ++dim) at[dim] = shapes.indices[dim] == 1 ? 0 : at[dim];
    to[shapes.axis] = read_integer(indices.view(), at);
    const double value = combined(reduce, value_at(expected, to), value_at(source, place));
    is_floating(dtype) ? write_double(expected.view(), to, value)
                       : write_integer(expected.view(), to, static_cast<int64_t>(value));
  });
  const std::vector<TensorView> from{x.view(), indices.view(), source.view()}, to{result.view()};
  NamedValues attributes{{"axis", static_cast<int64_t>(shapes.axis)}};
  if (reduce != "sum") {
    attributes.push_back({"reduce", std::string(reduce)});
    attributes.push_back({"include_self", true});
  }
  find_routine(reduce == "sum" ? "scatter_add" : "scatter_reduce")
      ->run({.inputs = from, .outputs = to, .attributes = attributes, .pool = pool});
  for_each_place(shapes.x, [&](const Sizes& place) {
    ASSERT_EQ(value_at(result, place), value_at(expected, place))
        << fmt::format("axis {} {}", shapes.axis, reduce);
  });
}

TEST(Scatter, CombinesEachElementOfTheSource) {
  const Scatter kShapes[] = {{{6, 4}, {9, 4}, {9, 4}, 0},          {{6, 4}, {6, 9}, {6, 9}, 1},
                             {{6, 4}, {3, 2}, {3, 2}, 0},          {{6, 4}, {5, 1}, {5, 4}, 0},
                             {{6, 4}, {1, 5}, {6, 5}, 1},          {{7}, {30}, {30}, 0},
                             {{3, 5, 4}, {3, 8, 1}, {3, 8, 4}, 1}, {{3, 5, 4}, {1, 8, 1}, {2, 8, 3}, 1},
                             {{3, 5, 4}, {1, 1, 9}, {3, 4, 9}, 2}, {{3, 5, 4}, {1, 5, 4}, {1, 5, 4}, 0},
                             {{50, 300}, {60, 300}, {60, 300}, 0}, {{50, 300}, {60, 1}, {60, 300}, 0},
                             {{4, 3}, {0, 3}, {0, 3}, 0}};
  ThreadPool pool(2, 0);
  for (const Scatter& shapes : kShapes) {
    for (const DType dtype : {DType::kF32, DType::kF64, DType::kBF16, DType::kI64, DType::kI32}) {
      for (const char* reduce : {"sum", "amax", "amin"}) {
        expect_combined(shapes, dtype, DType::kI64, reduce, &pool);
        expect_combined(shapes, dtype, DType::kI32, reduce, nullptr);
      }
    }
  }
}

TEST(Scatter, NamesTheFirstIndexOutside) {
  std::mt19937 random(3);
  ThreadPool pool(2, 0);
  const Tensor x = numbers(DType::kF32, {4, 2000}, 0, 1, random),
               source = numbers(DType::kF32, {9, 2000}, 0, 1, random);
  for (const int64_t index : {-1, 4}) {
    Tensor indices = numbers(DType::kI64, {9, 1}, 0, 3, random), result = make_tensor(DType::kF32, {4, 2000});
    write_integer(indices.view(), std::vector<int64_t>{5, 0}, index);
    const std::vector<TensorView> from{x.view(), indices.view(), source.view()}, to{result.view()};
    try {
      const NamedValues attributes{{"axis", 0}};
      find_routine("scatter_add")
          ->run({.inputs = from, .outputs = to, .attributes = attributes, .pool = &pool});
      FAIL() << "an index outside was taken";
    } catch (const UserError& error) {
      EXPECT_EQ(error.details().code, "INGOT-U333");
      EXPECT_NE(error.details().message.find(std::to_string(index)), std::string::npos);
    }
  }
}

// Running sums of halves would lose a quarter of each addend here.
TEST(Scatter, HalvesAreRoundedOnce) {
  constexpr int64_t kRows = 64;
  for (const std::string_view routine : {"scatter_add", "scatter_reduce"}) {
    for (const DType dtype : {DType::kF16, DType::kBF16}) {
      SCOPED_TRACE(fmt::format("{} of {}", routine, name(dtype)));
      Tensor x = make_tensor(dtype, {1, 3}), source = make_tensor(dtype, {kRows, 3}),
             result = make_tensor(dtype, {1, 3});
      const Tensor indices = make_tensor(DType::kI64, {kRows, 1});
      double sum = 0;
      for_each_place({kRows, 3}, [&](const Sizes& place) {
        write_double(source.view(), place, 0.01 * static_cast<double>(place[0] + 1));
        if (place[1] == 0) sum += read_double(source.view(), place);
      });
      const TensorView inputs[] = {x.view(), indices.view(), source.view()}, outputs[] = {result.view()};
      const std::vector<NamedValue> attributes = {
          {"axis", int64_t{0}}, {"reduce", std::string("sum")}, {"include_self", true}};
      find_routine(routine)->run({inputs, outputs, attributes});
      const Tensor expected = make_tensor(dtype, {1});
      const int64_t first = 0;
      write_double(expected.view(), {&first, 1}, sum);
      for_each_place({1, 3}, [&](const Sizes& place) {
        EXPECT_EQ(read_double(result.view(), place), read_double(expected.view(), {&first, 1}));
      });
    }
  }
}

}  // namespace
}  // namespace ingot::core
