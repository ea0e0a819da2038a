// SPDX-License-Identifier: Apache-2.0
// Scatters that combine, against a loop over the source: every axis, indices for each element or for whole
// rows, sources smaller than the target, native and narrow dtypes, with and without threads.
#include <gtest/gtest.h>

#include <fmt/core.h>

#include <cmath>
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

struct Reduction {
  std::string_view name;
  bool includes_self = true;
};

double combined(std::string_view reduce, double a, double b) {
  if (reduce == "prod") return a * b;
  if (reduce == "sum" || reduce == "mean") return a + b;
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

// Small whole numbers, so that every dtype has all sums.
class Expected {
 public:
  Expected(const Tensor& x, const Reduction& reduction)
      : x_(x), reduction_(reduction), counts_(make_tensor(DType::kI64, x.shape)), values_(counts_) {
    values_ = make_tensor(DType::kF64, x.shape);
    for_each_place(x.shape, [&](const Sizes& place) {
      write_double(values_.view(), place, value_at(x, place));
      write_integer(counts_.view(), place, reduction.includes_self ? 1 : 0);
    });
  }
  void add(const Sizes& to, double value) {
    const int64_t met = read_integer(counts_.view(), to);
    write_integer(counts_.view(), to, met + 1);
    write_double(values_.view(), to,
                 met == 0 ? value : combined(reduction_.name, value_at(values_, to), value));
  }
  double at(const Sizes& place) const {
    const double value = value_at(values_, place);
    const auto count = static_cast<double>(read_integer(counts_.view(), place));
    if (reduction_.name != "mean" || count < 2) return value;
    Tensor mean = make_tensor(x_.dtype, {1});  // rounded like elements, of integers down
    const Sizes first{0};
    is_floating(x_.dtype)
        ? write_double(mean.view(), first, value / count)
        : write_integer(mean.view(), first, static_cast<int64_t>(std::floor(value / count)));
    return value_at(mean, first);
  }

 private:
  const Tensor& x_;
  Reduction reduction_;
  Tensor counts_, values_;
};

void expect_combined(const Scatter& shapes, DType dtype, DType index_dtype, const Reduction& reduction,
                     ThreadPool* pool) {
  std::mt19937 random(11);
  const int64_t low = reduction.name == "prod" ? 1 : 0, high = reduction.name == "prod" ? 1 : 2;
  const bool is_signed =
      dtype != DType::kU8 && dtype != DType::kU16 && dtype != DType::kU32 && dtype != DType::kU64;
  const Tensor x = numbers(dtype, shapes.x, is_signed ? -2 : 0, 2, random),
               source = numbers(dtype, shapes.source, is_signed ? low - 2 : low, high, random);
  const Tensor indices = numbers(index_dtype, shapes.indices, 0, shapes.x[shapes.axis] - 1, random);
  Tensor result = make_tensor(dtype, shapes.x);
  Expected expected(x, reduction);
  for_each_place(shapes.source, [&](const Sizes& place) {
    Sizes at = place, to = place;
    for (size_t dim = 0; dim < at.size(); ++dim) at[dim] = shapes.indices[dim] == 1 ? 0 : at[dim];
    to[shapes.axis] = read_integer(indices.view(), at);
    expected.add(to, value_at(source, place));
  });
  const std::vector<TensorView> from{x.view(), indices.view(), source.view()}, to{result.view()};
  NamedValues attributes{{"axis", static_cast<int64_t>(shapes.axis)}};
  const bool adds = reduction.name == "sum" && reduction.includes_self;
  if (!adds) {
    attributes.push_back({"reduce", std::string(reduction.name)});
    attributes.push_back({"include_self", reduction.includes_self});
  }
  find_routine(adds ? "scatter_add" : "scatter_reduce")
      ->run({.inputs = from, .outputs = to, .attributes = attributes, .pool = pool});
  for_each_place(shapes.x, [&](const Sizes& place) {
    ASSERT_EQ(value_at(result, place), expected.at(place))
        << fmt::format("axis {} {} {} {}", shapes.axis, reduction.name, reduction.includes_self, name(dtype));
  });
}

TEST(Scatter, CombinesEachElementOfTheSource) {
  const Scatter kShapes[] = {{{6, 4}, {9, 4}, {9, 4}, 0},          {{6, 4}, {6, 9}, {6, 9}, 1},
                             {{6, 4}, {3, 2}, {3, 2}, 0},          {{6, 4}, {5, 1}, {5, 4}, 0},
                             {{6, 4}, {1, 5}, {6, 5}, 1},          {{7}, {30}, {30}, 0},
                             {{3, 5, 4}, {3, 8, 1}, {3, 8, 4}, 1}, {{3, 5, 4}, {1, 8, 1}, {2, 8, 3}, 1},
                             {{3, 5, 4}, {1, 1, 9}, {3, 4, 9}, 2}, {{3, 5, 4}, {1, 5, 4}, {1, 5, 4}, 0},
                             {{50, 300}, {60, 300}, {60, 300}, 0}, {{50, 300}, {60, 1}, {60, 300}, 0},
                             {{4, 3}, {0, 3}, {0, 3}, 0},          {{7, 1}, {30, 1}, {30, 1}, 0},
                             {{7, 3}, {30, 1}, {30, 1}, 0},        {{2, 7, 5}, {1, 9, 1}, {1, 9, 1}, 1},
                             {{5, 3, 4}, {5, 1, 1}, {5, 1, 1}, 1}, {{5, 3, 4}, {2, 3, 1}, {2, 3, 1}, 1},
                             {{5, 3, 4}, {1, 3, 1}, {2, 3, 1}, 1}};
  ThreadPool pool(2, 0);
  for (const Scatter& shapes : kShapes) {
    for (const DType dtype : {DType::kF32, DType::kF64, DType::kBF16, DType::kF16, DType::kI64, DType::kI32,
                              DType::kI16, DType::kI8, DType::kU8, DType::kU16, DType::kU32, DType::kU64}) {
      for (const char* reduce : {"sum", "prod", "mean", "amax", "amin"}) {
        expect_combined(shapes, dtype, DType::kI64, {reduce, true}, &pool);
        expect_combined(shapes, dtype, DType::kI32, {reduce, false}, nullptr);
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

// In the first part of the indices and the last, along the first dim and the last, without threads and with
// them.
TEST(Scatter, ChecksEveryIndexOfALine) {
  struct Line {
    Sizes shape, place;
    int64_t axis;
  };
  ThreadPool one(1, 0), two(2, 0);
  for (const int64_t position : {0, 57, 99}) {
    for (const Line& line : {Line{{100}, {position}, 0}, Line{{100, 1}, {position, 0}, 0},
                             Line{{90, 100}, {89, position}, 1}, Line{{3, 100}, {0, position}, 1}}) {
      for (ThreadPool* pool : {static_cast<ThreadPool*>(nullptr), &one, &two}) {
        std::mt19937 random(3);
        Sizes extents = line.shape;
        extents[static_cast<size_t>(line.axis)] = 4;
        const Tensor x = numbers(DType::kF32, extents, 0, 1, random),
                     source = numbers(DType::kF32, line.shape, 0, 1, random);
        Tensor indices = numbers(DType::kI32, line.shape, 0, 3, random),
               result = make_tensor(DType::kF32, extents);
        write_integer(indices.view(), line.place, -7);
        const std::vector<TensorView> from{x.view(), indices.view(), source.view()}, to{result.view()};
        const NamedValues attributes{{"axis", line.axis}};
        EXPECT_THROW(find_routine("scatter_add")
                         ->run({.inputs = from, .outputs = to, .attributes = attributes, .pool = pool}),
                     UserError);
      }
    }
  }
}

TEST(Scatter, KeepsEveryHalf) {
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    Tensor x = make_tensor(dtype, {1 << 16}), source = make_tensor(dtype, {1 << 16}),
           indices = make_tensor(DType::kI64, {1 << 16}), result = make_tensor(dtype, {1 << 16});
    auto* bits = reinterpret_cast<uint16_t*>(source.data.get());
    for (int i = 0; i < 1 << 16; ++i) {
      bits[i] = static_cast<uint16_t>(i);
      reinterpret_cast<int64_t*>(indices.data.get())[i] = i;
    }
    const std::vector<TensorView> from{x.view(), indices.view(), source.view()}, to{result.view()};
    const NamedValues attributes{
        {"axis", int64_t{0}}, {"reduce", std::string("sum")}, {"include_self", false}};
    find_routine("scatter_reduce")->run({.inputs = from, .outputs = to, .attributes = attributes});
    for (int64_t i = 0; i < 1 << 16; ++i) {
      const double expected = read_double(source.view(), {&i, 1}),
                   value = read_double(result.view(), {&i, 1});
      ASSERT_TRUE(value == expected || (std::isnan(value) && std::isnan(expected))) << i << name(dtype);
    }
  }
}

// Running sums of halves would lose a quarter of each addend here.
TEST(Scatter, HalvesAreRoundedOnce) {
  constexpr int64_t kRows = 64, kColumns = 11;  // a vector of halves and some more
  for (const std::string_view routine : {"scatter_add", "scatter_reduce"}) {
    for (const DType dtype : {DType::kF16, DType::kBF16}) {
      SCOPED_TRACE(fmt::format("{} of {}", routine, name(dtype)));
      Tensor x = make_tensor(dtype, {1, kColumns}), source = make_tensor(dtype, {kRows, kColumns}),
             result = make_tensor(dtype, {1, kColumns});
      const Tensor indices = make_tensor(DType::kI64, {kRows, 1});
      double sum = 0;
      for_each_place({kRows, kColumns}, [&](const Sizes& place) {
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
      for_each_place({1, kColumns}, [&](const Sizes& place) {
        EXPECT_EQ(read_double(result.view(), place), read_double(expected.view(), {&first, 1}));
      });
    }
  }
}

}  // namespace
}  // namespace ingot::core
