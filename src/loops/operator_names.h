// SPDX-License-Identifier: Apache-2.0
// The operators of Loop IR in texts, in the order of their enums.
#pragma once

#include <string_view>

namespace ingot::core::loops {

inline constexpr std::string_view kUnaryNames[] = {"-",     "abs",  "not",   "sqrt",
                                                   "floor", "ceil", "trunc", "round"};
inline constexpr std::string_view kBinaryNames[] = {
    "+",   "-",  "*",   "/",  "floordiv", "mod", "fmod", "max", "min", "pow", "atan2",
    "and", "or", "xor", "<<", ">>",       "==",  "!=",   "<",   "<=",  ">",   ">="};
inline constexpr std::string_view kCombineNames[] = {"", "add", "multiply", "max", "min", "and", "or"};

// Whether a binary operator is written `max(a, b)`, not `(a + b)`.
inline bool is_function_name(std::string_view name) { return name[0] >= 'a' && name[0] <= 'z'; }

}  // namespace ingot::core::loops
