// SPDX-License-Identifier: Apache-2.0
// Arithmetic. Rules are valid for NaN and infinities, and do not change rounding; the sign of a zero may
// change.
#include <cmath>

#include "ops/ops.h"
#include "passes/simplify/rules.h"

namespace ingot::core::rewriting {
namespace {

bool are_known_integers(const Match& match) {
  return is_integer_result(match) && number_everywhere(match.value("a")) &&
         number_everywhere(match.value("b"));
}

// x / 2^n = x * 2^-n exactly, if 2^-n is a normal number.
Value* multiply_by_inverse(Graph& graph, const Match& match) {
  const auto divisor = number_everywhere(match.value("a"));
  if (!divisor || !is_floating_result(match)) return nullptr;
  int exponent = 0;
  if (std::abs(std::frexp(*divisor, &exponent)) != 0.5 || std::abs(exponent) > 14) return nullptr;
  return graph.call(ops::multiply, {match.value("x"), add_number(graph, 1 / *divisor, match.dtype())});
}

constexpr Rule kAlgebraRules[] = {
    {.from = "add(x, 0)", .to = "x"},
    {.from = "subtract(x, 0)", .to = "x"},
    {.from = "subtract(x, x)", .to = "0", .when = is_integer_result},
    {.from = "add(x, negate(y))", .to = "subtract(x, y)"},
    {.from = "subtract(x, negate(y))", .to = "add(x, y)"},
    {.from = "add(add(x, a), b)", .to = "add(x, add(a, b))", .when = are_known_integers},
    {.from = "multiply(x, 1)", .to = "x"},
    {.from = "multiply(x, -1)", .to = "negate(x)"},
    {.from = "multiply(x, 0)", .to = "0", .when = is_integer_result},
    {.from = "multiply(multiply(x, a), b)", .to = "multiply(x, multiply(a, b))", .when = are_known_integers},
    {.from = "multiply(negate(x), negate(y))", .to = "multiply(x, y)"},
    {.from = "divide(x, 1)", .to = "x"},
    {.from = "divide(x, -1)", .to = "negate(x)", .when = is_floating_result},
    {.from = "divide(1, x)", .to = "reciprocal(x)", .when = is_floating_result},
    {.from = "divide(x, a)", .build = multiply_by_inverse},
    {.from = "reciprocal(square_root(x))", .to = "reciprocal_square_root(x)"},
    {.from = "floor_divide(x, 1)", .to = "x", .when = is_integer_result},
    {.from = "modulo(x, 1)", .to = "0", .when = is_integer_result},
    {.from = "remainder(x, 1)", .to = "0", .when = is_integer_result},
    {.from = "negate(negate(x))", .to = "x"},
    {.from = "absolute(negate(x))", .to = "absolute(x)"},
    {.from = "power(x, 0)", .to = "1"},
    {.from = "power(x, 1)", .to = "x"},
    {.from = "power(x, 2)", .to = "multiply(x, x)"},
    {.from = "power(x, 3)", .to = "multiply(multiply(x, x), x)"},
    {.from = "power(x, 0.5)", .to = "square_root(x)", .when = is_floating_result},
    {.from = "power(x, -0.5)", .to = "reciprocal_square_root(x)", .when = is_floating_result},
    {.from = "power(x, -1)", .to = "reciprocal(x)", .when = is_floating_result},
    {.from = "power(x, -2)", .to = "reciprocal(multiply(x, x))", .when = is_floating_result},
    {.from = "maximum(x, x)", .to = "x"},
    {.from = "minimum(x, x)", .to = "x"},
    {.from = "absolute(absolute(x))", .to = "absolute(x)"},
    {.from = "relu(relu(x))", .to = "relu(x)"},
};

}  // namespace

std::span<const Rule> algebra_rules() { return kAlgebraRules; }

}  // namespace ingot::core::rewriting
