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
    {"add(x, 0)", "x"},
    {"subtract(x, 0)", "x"},
    {"subtract(x, x)", "0", is_integer_result},
    {"add(x, negate(y))", "subtract(x, y)"},
    {"subtract(x, negate(y))", "add(x, y)"},
    {"add(add(x, a), b)", "add(x, add(a, b))", are_known_integers},
    {"multiply(x, 1)", "x"},
    {"multiply(x, -1)", "negate(x)"},
    {"multiply(x, 0)", "0", is_integer_result},
    {"multiply(multiply(x, a), b)", "multiply(x, multiply(a, b))", are_known_integers},
    {"multiply(negate(x), negate(y))", "multiply(x, y)"},
    {"divide(x, 1)", "x"},
    {"divide(x, -1)", "negate(x)", is_floating_result},
    {"divide(1, x)", "reciprocal(x)", is_floating_result},
    {"divide(x, a)", {}, nullptr, multiply_by_inverse},
    {"reciprocal(square_root(x))", "reciprocal_square_root(x)"},
    {"floor_divide(x, 1)", "x", is_integer_result},
    {"modulo(x, 1)", "0", is_integer_result},
    {"remainder(x, 1)", "0", is_integer_result},
    {"negate(negate(x))", "x"},
    {"absolute(negate(x))", "absolute(x)"},
    {"power(x, 0)", "1"},
    {"power(x, 1)", "x"},
    {"power(x, 2)", "multiply(x, x)"},
    {"power(x, 3)", "multiply(multiply(x, x), x)"},
    {"power(x, 0.5)", "square_root(x)", is_floating_result},
    {"power(x, -0.5)", "reciprocal_square_root(x)", is_floating_result},
    {"power(x, -1)", "reciprocal(x)", is_floating_result},
    {"power(x, -2)", "reciprocal(multiply(x, x))", is_floating_result},
    {"maximum(x, x)", "x"},
    {"minimum(x, x)", "x"},
    {"absolute(absolute(x))", "absolute(x)"},
    {"relu(relu(x))", "relu(x)"},
};

}  // namespace

std::span<const Rule> algebra_rules() { return kAlgebraRules; }

}  // namespace ingot::core::rewriting
