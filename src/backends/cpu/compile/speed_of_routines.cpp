// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/speed_of_routines.h"

#include <algorithm>

#include "ops/ops.h"
#include "ops/special_function.h"

namespace ingot::core::cpu {
namespace {

constexpr int64_t kTypicalSize = 128;  // of a matrix whose size is a symbol

// Nanoseconds per multiply-add of n * n * n, which decrease with n to those of products.
struct Cost {
  double cubic = 0, square = 0;
  double at(double n) const { return cubic + square / n; }
};
// Measured: docs/design/012-slow-paths.md. `values`: without their vectors.
struct MatrixCosts {
  const Op* op;
  Cost own, single, wide;
  Cost own_values = {}, single_values = {}, wide_values = {};
};
constexpr MatrixCosts kMatrixCosts[] = {
    {&ops::cholesky, {0.023, 4.5}, {0.004, 3.8}, {0.022, 3.2}},
    {&ops::lu_factor, {0.041, 4.6}, {0.018, 4.1}, {0.03, 3.7}},
    {&ops::triangular_solve, {0.055, 5.7}, {0.017, 6.4}, {0.029, 5.8}},
    {&ops::householder_qr, {0.034, 11.5}, {0.01, 11}, {0.045, 11}},
    {&ops::householder_product, {0.026, 15.5}, {0.019, 6.1}, {0.063, 6.1}},
    {&ops::matrix_exponential, {0.12, 20}, {0.03, 34}, {0.11, 48}},
    {&ops::symmetric_eigen, {0.22, 59}, {0.044, 41}, {0.16, 59}, {0.045, 22}, {0.028, 19}, {0.067, 21.5}},
    {&ops::singular_values, {0.44, 92}, {0.12, 85}, {0.3, 130}, {0.055, 47}, {0.088, 40}, {0.16, 44}},
};

// Nanoseconds per element; `single` counts for 16 bits too.
struct FunctionCosts {
  std::string_view function;
  double own, single, wide;
};
constexpr FunctionCosts kFunctionCosts[] = {
    {"airy", 85, 38, 80},          {"bessel_k1", 109, 54, 64},        {"chebyshev_t", 26, 12.5, 13},
    {"chebyshev_u", 26, 12.5, 13}, {"chebyshev_v", 26, 12.5, 13},     {"chebyshev_w", 26, 12.5, 13},
    {"hermite_h", 26, 12.5, 13},   {"hermite_he", 26, 12.5, 13},      {"laguerre", 26, 12.5, 13},
    {"legendre", 26, 12.5, 13},    {"scaled_bessel_k1", 104, 51, 82},
};

double size_or_typical(const Dim& dim) {
  return static_cast<double>(std::max<int64_t>(1, dim.constant().value_or(kTypicalSize)));
}

// The extent that the largest operand lacks of n * n * n.
double missing_extent(const Node& node) {
  const Shape& a = node.operand_type(0).shape;
  const double rows = size_or_typical(a[a.size() - 2]), columns = size_or_typical(a.back());
  if (node.op != &ops::triangular_solve) return std::min(rows, columns);
  return std::min(rows, size_or_typical(node.operand_type(1).shape.back()));
}

// Of values and vectors, or of matrices of vectors and values.
bool has_values_only(const Node& node) {
  const bool is_decomposed = node.op == &ops::symmetric_eigen || node.op == &ops::singular_values;
  return is_decomposed && node.results.size() == 1;
}

RoutineRates rates_of_matrices(const Node& node, const MatrixCosts& costs) {
  const bool is_wide = node.operand_type(0).dtype == DType::kF64;
  const double n = missing_extent(node);
  if (has_values_only(node)) {
    const Cost& peer = is_wide ? costs.wide_values : costs.single_values;
    return {1 / (n * costs.own_values.at(n)), 1 / (n * peer.at(n))};
  }
  return {1 / (n * costs.own.at(n)), 1 / (n * (is_wide ? costs.wide : costs.single).at(n))};
}

}  // namespace

RoutineRates rates_of_routine(const Node& node) {
  if (node.op == &ops::special_function) {
    const std::string name = node.attributes<ops::SpecialFunction>().function;
    const auto* const found = std::ranges::find(kFunctionCosts, name, &FunctionCosts::function);
    if (found == std::end(kFunctionCosts)) return {};
    return {1 / found->own, 1 / (node.operand_type(0).dtype == DType::kF64 ? found->wide : found->single)};
  }
  const auto* const found = std::ranges::find(kMatrixCosts, node.op, &MatrixCosts::op);
  return found == std::end(kMatrixCosts) ? RoutineRates{} : rates_of_matrices(node, *found);
}

}  // namespace ingot::core::cpu
