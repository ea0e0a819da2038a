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
    {"logical_not(logical_not(x))", "x"},
    {"logical_not(equal(x, y))", "not_equal(x, y)"},
    {"logical_not(not_equal(x, y))", "equal(x, y)"},
    {"logical_and(x, 1)", "x"},
    {"logical_and(x, 0)", "0"},
    {"logical_and(x, x)", "x"},
    {"logical_or(x, 1)", "1"},
    {"logical_or(x, 0)", "x"},
    {"logical_or(x, x)", "x"},
    {"logical_xor(x, 0)", "x"},
    {"bitwise_not(bitwise_not(x))", "x"},
    {"bitwise_not(x)", "logical_not(x)", is_bool_result},
    {"bitwise_and(x, y)", "logical_and(x, y)", is_bool_result},
    {"bitwise_or(x, y)", "logical_or(x, y)", is_bool_result},
    {"bitwise_xor(x, y)", "logical_xor(x, y)", is_bool_result},
    {"bitwise_and(x, 0)", "0"},
    {"bitwise_and(x, x)", "x"},
    {"bitwise_or(x, 0)", "x"},
    {"bitwise_or(x, x)", "x"},
    {"bitwise_xor(x, 0)", "x"},
    {"equal(x, x)", "1", compares_integers},
    {"equal(x, 1)", "x", compares_bools},
    {"equal(x, 0)", "logical_not(x)", compares_bools},
    {"not_equal(x, x)", "0", compares_integers},
    {"not_equal(x, 0)", "x", compares_bools},
    {"not_equal(x, 1)", "logical_not(x)", compares_bools},
    {"less(x, x)", "0"},
    {"greater(x, x)", "0"},
    {"less_equal(x, x)", "1", compares_integers},
    {"greater_equal(x, x)", "1", compares_integers},
    {"select(1, x, y)", "x"},
    {"select(0, x, y)", "y"},
    {"select(c, x, x)", "x"},
    {"select(logical_not(c), x, y)", "select(c, y, x)"},
    {"select(c, 1, 0)", "c", is_bool_result},
    {"select(c, 0, 1)", "logical_not(c)", is_bool_result},
    {"select(c, select(c, x, y), z)", "select(c, x, z)"},
    {"select(c, x, select(c, y, z))", "select(c, x, z)"},
};

}  // namespace

std::span<const Rule> logic_rules() { return kLogicRules; }

}  // namespace ingot::core::rewriting
