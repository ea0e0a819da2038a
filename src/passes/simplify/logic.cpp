// SPDX-License-Identifier: Apache-2.0
// Booleans, bits and selects.
#include "passes/simplify/rules.h"

namespace ingot::core::rewriting {
namespace {

bool compares_bools(const Match& match) { return match.value("x")->type.dtype == DType::kBool; }
bool compares_integers(const Match& match) {
  return is_integer(match.value("x")->type.dtype) || compares_bools(match);
}

constexpr Rule kLogicRules[] = {
    {.from = "logical_not(logical_not(x))", .to = "x"},
    {.from = "logical_not(equal(x, y))", .to = "not_equal(x, y)"},
    {.from = "logical_not(not_equal(x, y))", .to = "equal(x, y)"},
    {.from = "logical_and(x, 1)", .to = "x"},
    {.from = "logical_and(x, 0)", .to = "0"},
    {.from = "logical_and(x, x)", .to = "x"},
    {.from = "logical_or(x, 1)", .to = "1"},
    {.from = "logical_or(x, 0)", .to = "x"},
    {.from = "logical_or(x, x)", .to = "x"},
    {.from = "logical_xor(x, 0)", .to = "x"},
    {.from = "bitwise_not(bitwise_not(x))", .to = "x"},
    {.from = "bitwise_not(x)", .to = "logical_not(x)", .when = is_bool_result},
    {.from = "bitwise_and(x, y)", .to = "logical_and(x, y)", .when = is_bool_result},
    {.from = "bitwise_or(x, y)", .to = "logical_or(x, y)", .when = is_bool_result},
    {.from = "bitwise_xor(x, y)", .to = "logical_xor(x, y)", .when = is_bool_result},
    {.from = "bitwise_and(x, 0)", .to = "0"},
    {.from = "bitwise_and(x, x)", .to = "x"},
    {.from = "bitwise_or(x, 0)", .to = "x"},
    {.from = "bitwise_or(x, x)", .to = "x"},
    {.from = "bitwise_xor(x, 0)", .to = "x"},
    {.from = "equal(x, x)", .to = "1", .when = compares_integers},
    {.from = "equal(x, 1)", .to = "x", .when = compares_bools},
    {.from = "equal(x, 0)", .to = "logical_not(x)", .when = compares_bools},
    {.from = "not_equal(x, x)", .to = "0", .when = compares_integers},
    {.from = "not_equal(x, 0)", .to = "x", .when = compares_bools},
    {.from = "not_equal(x, 1)", .to = "logical_not(x)", .when = compares_bools},
    {.from = "less(x, x)", .to = "0"},
    {.from = "greater(x, x)", .to = "0"},
    {.from = "less_equal(x, x)", .to = "1", .when = compares_integers},
    {.from = "greater_equal(x, x)", .to = "1", .when = compares_integers},
    {.from = "select(1, x, y)", .to = "x"},
    {.from = "select(0, x, y)", .to = "y"},
    {.from = "select(c, x, x)", .to = "x"},
    {.from = "select(logical_not(c), x, y)", .to = "select(c, y, x)"},
    {.from = "select(c, 1, 0)", .to = "c", .when = is_bool_result},
    {.from = "select(c, 0, 1)", .to = "logical_not(c)", .when = is_bool_result},
    {.from = "select(c, select(c, x, y), z)", .to = "select(c, x, z)"},
    {.from = "select(c, x, select(c, y, z))", .to = "select(c, x, z)"},
};

}  // namespace

std::span<const Rule> logic_rules() { return kLogicRules; }

}  // namespace ingot::core::rewriting
