// SPDX-License-Identifier: Apache-2.0
// Selects, maxima and minima inside each other: all small forms, on special values. LLVM's combiner knows
// many identities of them, and not all that it believes hold.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "loops/interpreter.h"
#include "tests/backends/cpu/compile/run_kernel.h"
#include "tests/backends/cpu/compile/special_values.h"
#include "tests/loops/kernels.h"

namespace ingot::core::cpu {
namespace {

using loops::Access;
using loops::Binary;
using loops::Expr;
using loops::Kernel;
using loops::Unary;
using loops::test::buffer;
using loops::test::symbol;

constexpr size_t kBatch = 96;  // forms of one kernel

// z[k, i] = forms[k] of x[i] and y[i]
Kernel kernel_of(std::span<const Expr> forms, DType dtype, int64_t count) {
  Kernel kernel{.name = "forms", .parallel = {{"i", count}}};
  const auto rows = static_cast<int64_t>(forms.size());
  kernel.buffers = {buffer("x", dtype, {count}), buffer("y", dtype, {count}),
                    buffer("z", dtype, {rows, count}, Access::kWrite)};
  for (int64_t k = 0; k < rows; ++k) {
    kernel.stages.push_back({.name = "z" + std::to_string(k),
                             .value = forms[static_cast<size_t>(k)],
                             .store = loops::Store{2, {Dim(k), symbol("i")}}});
  }
  return kernel;
}

void expect_exact(std::span<const Expr> forms, DType dtype) {
  constexpr int64_t count = 176;  // each special value of x with four of y
  const Tensor x = test::special_tensor(dtype, {count}, 0), y = test::special_tensor(dtype, {count}, 2);
  const Kernel kernel = kernel_of(forms, dtype, count);
  const auto rows = static_cast<int64_t>(forms.size());
  const auto results = [&] { return make_tensor(dtype, {rows * count}); };
  const Tensor expected = results();
  const std::vector<TensorView> views{x.view(), y.view(), expected.view()};
  ASSERT_EQ(interpret(kernel, views, {}), loops::KernelStatus::kOk);
  for (const CpuFeatures features : test::targets()) {
    const std::vector<Tensor> buffers{x, y, results()};
    ASSERT_EQ(test::run_once(kernel, features, buffers), 0);
    const std::string difference = test::first_difference(expected, buffers[2]);
    if (difference.empty()) continue;
    const int64_t first = std::stoll(difference.substr(std::string("element ").size()));
    const auto form = static_cast<size_t>(first / count);
    const int64_t point = first % count;
    FAIL() << to_string(features) << ": " << difference << " at x = " << read_double(x.view(), {&point, 1})
           << ", y = " << read_double(y.view(), {&point, 1}) << "\n"
           << to_string(kernel_of(forms.subspan(form, 1), dtype, count));
  }
}

void expect_exact_in_batches(const std::vector<Expr>& forms, DType dtype) {
  for (size_t begin = 0; begin < forms.size() && !::testing::Test::HasFailure(); begin += kBatch)
    expect_exact(std::span(forms).subspan(begin, std::min(kBatch, forms.size() - begin)), dtype);
}

class NestedChoices : public ::testing::TestWithParam<DType> {
 protected:
  Expr x() const { return loops::load(0, GetParam(), {symbol("i")}); }
  Expr y() const { return loops::load(1, GetParam(), {symbol("i")}); }
  Expr size_of(const Expr& a) const { return loops::unary(Unary::kAbsolute, a); }
  Expr number(double value) const { return loops::constant(GetParam(), value); }
};

// outer ? a : (inner ? a : b), in all its turns, of comparisons of x or |x| with constants.
TEST_P(NestedChoices, Selects) {
  const Binary comparisons[] = {Binary::kEqual,     Binary::kNotEqual, Binary::kLess,
                                Binary::kLessEqual, Binary::kGreater,  Binary::kGreaterEqual};
  struct Condition {
    Expr holds;
    Expr bound;
  };
  const auto conditions_with = [&](std::vector<Expr> bounds) {
    std::vector<Condition> conditions{{binary(Binary::kNotEqual, x(), x()), number(0)}};
    for (const Binary comparison : comparisons) {
      for (const Expr& left : {x(), size_of(x())}) {
        for (const Expr& bound : bounds) conditions.push_back({binary(comparison, left, bound), bound});
      }
    }
    return conditions;
  };
  const std::vector<Condition> outer_conditions = conditions_with({number(0), y()});
  const std::vector<Condition> inner_conditions =
      conditions_with({number(0), number(-0.0), number(1), number(INFINITY), y()});
  std::vector<Expr> forms;
  for (const Condition& outer : outer_conditions) {
    for (const Condition& inner : inner_conditions) {
      for (const Expr& a : {x(), size_of(x())}) {
        const Expr first = select(inner.holds, a, inner.bound), second = select(inner.holds, inner.bound, a);
        forms.push_back(select(outer.holds, a, first));
        forms.push_back(select(outer.holds, first, a));
        forms.push_back(select(outer.holds, a, second));
        forms.push_back(select(outer.holds, second, a));
      }
    }
  }
  expect_exact_in_batches(forms, GetParam());
}

TEST_P(NestedChoices, MaximaAndMinima) {
  const std::vector<Expr> leaves{x(),       size_of(x()),     loops::unary(Unary::kNegate, x()),
                                 y(),       number(0),        number(-0.0),
                                 number(1), number(INFINITY), number(NAN)};
  std::vector<Expr> forms;
  for (const Binary outer : {Binary::kMaximum, Binary::kMinimum}) {
    for (const Binary inner : {Binary::kMaximum, Binary::kMinimum}) {
      for (const Expr& a : leaves) {
        for (const Expr& b : leaves) {
          for (const Expr& c : leaves) {
            forms.push_back(binary(outer, binary(inner, a, b), c));
            forms.push_back(binary(outer, c, binary(inner, a, b)));
          }
        }
      }
    }
  }
  expect_exact_in_batches(forms, GetParam());
}

// A choice in the narrow dtype of a number that is wide, and the other way round.
TEST_P(NestedChoices, AcrossConversions) {
  const DType other = GetParam() == DType::kF32 ? DType::kF64 : DType::kF32;
  std::vector<Expr> forms;
  for (const Expr& a : {x(), size_of(x())}) {
    const Expr converted = convert(other, a);
    for (const double bound : {0.0, -0.0, 1.0}) {
      const Expr limit = loops::constant(other, bound);
      for (const Binary choice : {Binary::kMaximum, Binary::kMinimum}) {
        forms.push_back(convert(GetParam(), binary(choice, converted, limit)));
        forms.push_back(convert(GetParam(), binary(choice, limit, converted)));
      }
      for (const Binary comparison :
           {Binary::kLess, Binary::kLessEqual, Binary::kGreater, Binary::kGreaterEqual}) {
        const Expr holds = binary(comparison, converted, limit);
        forms.push_back(convert(GetParam(), select(holds, limit, converted)));
        forms.push_back(convert(GetParam(), select(holds, converted, limit)));
      }
    }
  }
  expect_exact_in_batches(forms, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Dtypes, NestedChoices, ::testing::Values(DType::kF32, DType::kF64),
                         [](const auto& info) { return std::string(name(info.param)); });

}  // namespace
}  // namespace ingot::core::cpu
