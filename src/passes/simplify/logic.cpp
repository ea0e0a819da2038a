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
    {.name = "logical_not_twice", .from = "logical_not(logical_not(x))", .to = "x"},
    {.name = "not_equal_of_not", .from = "logical_not(equal(x, y))", .to = "not_equal(x, y)"},
    {.name = "equal_of_not", .from = "logical_not(not_equal(x, y))", .to = "equal(x, y)"},
    {.name = "and_true", .from = "logical_and(x, 1)", .to = "x"},
    {.name = "and_false", .from = "logical_and(x, 0)", .to = "0"},
    {.name = "and_itself", .from = "logical_and(x, x)", .to = "x"},
    {.name = "or_true", .from = "logical_or(x, 1)", .to = "1"},
    {.name = "or_false", .from = "logical_or(x, 0)", .to = "x"},
    {.name = "or_itself", .from = "logical_or(x, x)", .to = "x"},
    {.name = "xor_false", .from = "logical_xor(x, 0)", .to = "x"},
    {.name = "bitwise_not_twice", .from = "bitwise_not(bitwise_not(x))", .to = "x"},
    {.name = "bitwise_not_of_bool", .from = "bitwise_not(x)", .to = "logical_not(x)", .when = is_bool_result},
    {.name = "bitwise_and_of_bool",
     .from = "bitwise_and(x, y)",
     .to = "logical_and(x, y)",
     .when = is_bool_result},
    {.name = "bitwise_or_of_bool",
     .from = "bitwise_or(x, y)",
     .to = "logical_or(x, y)",
     .when = is_bool_result},
    {.name = "bitwise_xor_of_bool",
     .from = "bitwise_xor(x, y)",
     .to = "logical_xor(x, y)",
     .when = is_bool_result},
    {.name = "bitwise_and_zero", .from = "bitwise_and(x, 0)", .to = "0"},
    {.name = "bitwise_and_itself", .from = "bitwise_and(x, x)", .to = "x"},
    {.name = "bitwise_or_zero", .from = "bitwise_or(x, 0)", .to = "x"},
    {.name = "bitwise_or_itself", .from = "bitwise_or(x, x)", .to = "x"},
    {.name = "bitwise_xor_zero", .from = "bitwise_xor(x, 0)", .to = "x"},
    {.name = "equal_to_itself", .from = "equal(x, x)", .to = "1", .when = compares_integers},
    {.name = "equal_to_true", .from = "equal(x, 1)", .to = "x", .when = compares_bools},
    {.name = "equal_to_false", .from = "equal(x, 0)", .to = "logical_not(x)", .when = compares_bools},
    {.name = "not_equal_to_itself", .from = "not_equal(x, x)", .to = "0", .when = compares_integers},
    {.name = "not_equal_to_false", .from = "not_equal(x, 0)", .to = "x", .when = compares_bools},
    {.name = "not_equal_to_true", .from = "not_equal(x, 1)", .to = "logical_not(x)", .when = compares_bools},
    {.name = "less_than_itself", .from = "less(x, x)", .to = "0"},
    {.name = "greater_than_itself", .from = "greater(x, x)", .to = "0"},
    {.name = "less_equal_itself", .from = "less_equal(x, x)", .to = "1", .when = compares_integers},
    {.name = "greater_equal_itself", .from = "greater_equal(x, x)", .to = "1", .when = compares_integers},
    {.name = "select_by_true", .from = "select(1, x, y)", .to = "x"},
    {.name = "select_by_false", .from = "select(0, x, y)", .to = "y"},
    {.name = "select_same", .from = "select(c, x, x)", .to = "x"},
    {.name = "select_by_not", .from = "select(logical_not(c), x, y)", .to = "select(c, y, x)"},
    {.name = "select_true_false", .from = "select(c, 1, 0)", .to = "c", .when = is_bool_result},
    {.name = "select_false_true", .from = "select(c, 0, 1)", .to = "logical_not(c)", .when = is_bool_result},
    {.name = "select_same_condition_first", .from = "select(c, select(c, x, y), z)", .to = "select(c, x, z)"},
    {.name = "select_same_condition_second",
     .from = "select(c, x, select(c, y, z))",
     .to = "select(c, x, z)"},
};

}  // namespace

std::span<const Rule> logic_rules() { return kLogicRules; }

}  // namespace ingot::core::rewriting
