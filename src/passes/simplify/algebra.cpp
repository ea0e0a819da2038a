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

// The opposite of an unsigned number is another number of the same sign.
bool is_signed_result(const Match& match) { return is_signed(match.dtype()); }

// x / 2^n = x * 2^-n exactly, if 2^-n is a normal number.
Value* multiply_by_inverse(Graph& graph, const Match& match) {
  const auto divisor = number_everywhere(match.value("a"));
  if (!divisor || !is_floating_result(match)) return nullptr;
  int exponent = 0;
  if (std::abs(std::frexp(*divisor, &exponent)) != 0.5 || std::abs(exponent) > 14) return nullptr;
  return graph.call(ops::multiply, {match.value("x"), add_number(graph, 1 / *divisor, match.dtype())});
}

constexpr Rule kAlgebraRules[] = {
    {.name = "add_zero", .from = "add(x, 0)", .to = "x"},
    {.name = "subtract_zero", .from = "subtract(x, 0)", .to = "x"},
    {.name = "subtract_itself", .from = "subtract(x, x)", .to = "0", .when = is_integer_result},
    {.name = "add_negated", .from = "add(x, negate(y))", .to = "subtract(x, y)"},
    {.name = "subtract_negated", .from = "subtract(x, negate(y))", .to = "add(x, y)"},
    {.name = "add_integers",
     .from = "add(add(x, a), b)",
     .to = "add(x, add(a, b))",
     .when = are_known_integers},
    {.name = "multiply_by_one", .from = "multiply(x, 1)", .to = "x"},
    {.name = "multiply_by_minus_one", .from = "multiply(x, -1)", .to = "negate(x)"},
    {.name = "multiply_by_zero", .from = "multiply(x, 0)", .to = "0", .when = is_integer_result},
    {.name = "multiply_integers",
     .from = "multiply(multiply(x, a), b)",
     .to = "multiply(x, multiply(a, b))",
     .when = are_known_integers},
    {.name = "multiply_negated", .from = "multiply(negate(x), negate(y))", .to = "multiply(x, y)"},
    {.name = "divide_by_one", .from = "divide(x, 1)", .to = "x"},
    {.name = "divide_by_minus_one", .from = "divide(x, -1)", .to = "negate(x)", .when = is_floating_result},
    {.name = "divide_one", .from = "divide(1, x)", .to = "reciprocal(x)", .when = is_floating_result},
    {.name = "divide_by_power_of_two", .from = "divide(x, a)", .build = multiply_by_inverse},
    {.name = "reciprocal_square_root",
     .from = "reciprocal(square_root(x))",
     .to = "reciprocal_square_root(x)"},
    {.name = "floor_divide_by_one", .from = "floor_divide(x, 1)", .to = "x", .when = is_integer_result},
    {.name = "modulo_one", .from = "modulo(x, 1)", .to = "0", .when = is_integer_result},
    {.name = "remainder_one", .from = "remainder(x, 1)", .to = "0", .when = is_integer_result},
    {.name = "negate_twice", .from = "negate(negate(x))", .to = "x"},
    {.name = "absolute_of_negated",
     .from = "absolute(negate(x))",
     .to = "absolute(x)",
     .when = is_signed_result},
    {.name = "power_zero", .from = "power(x, 0)", .to = "1"},
    {.name = "power_one", .from = "power(x, 1)", .to = "x"},
    {.name = "square", .from = "power(x, 2)", .to = "multiply(x, x)"},
    {.name = "cube", .from = "power(x, 3)", .to = "multiply(multiply(x, x), x)"},
    {.name = "power_minus_one", .from = "power(x, -1)", .to = "reciprocal(x)", .when = is_floating_result},
    {.name = "power_minus_two",
     .from = "power(x, -2)",
     .to = "reciprocal(multiply(x, x))",
     .when = is_floating_result},
    {.name = "maximum_of_itself", .from = "maximum(x, x)", .to = "x"},
    {.name = "minimum_of_itself", .from = "minimum(x, x)", .to = "x"},
    {.name = "absolute_twice", .from = "absolute(absolute(x))", .to = "absolute(x)"},
    {.name = "relu_twice", .from = "relu(relu(x))", .to = "relu(x)"},
};

}  // namespace

std::span<const Rule> algebra_rules() { return kAlgebraRules; }

}  // namespace ingot::core::rewriting
