// SPDX-License-Identifier: Apache-2.0
// A predicate is a condition on sizes: comparisons of dims, joined by "and" and "or".
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "types/dim.h"

namespace ingot::core {

struct Predicate {
  // Numbers are stored in engine files: never renumber, only append.
  enum class Kind : uint8_t { kEqual = 0, kNotEqual = 1, kLess = 2, kAtMost = 3, kAnd = 4, kOr = 5 };
  Kind kind = Kind::kEqual;
  Dim left, right;                                // comparisons
  std::vector<Predicate> parts;                   // kAnd, kOr: two
  bool operator==(const Predicate& other) const;  // of equal form; a == b is b == a
};

constexpr size_t kMaxPredicateDepth = 64;

inline Predicate always() { return {}; }  // 0 == 0
Predicate compare(Predicate::Kind kind, Dim left, Dim right);
inline Predicate is_less(Dim a, Dim b) { return compare(Predicate::Kind::kLess, std::move(a), std::move(b)); }
inline Predicate at_most(Dim a, Dim b) {
  return compare(Predicate::Kind::kAtMost, std::move(a), std::move(b));
}
Predicate both(Predicate a, Predicate b);
Predicate either(Predicate a, Predicate b);
Predicate negation(const Predicate& predicate);  // of the same depth

bool is_true(Predicate::Kind comparison, int64_t left, int64_t right);
bool evaluate(const Predicate& predicate, const SymbolValues& values);
std::vector<std::string> symbols_of(const Predicate& predicate);
// True only if `a` is non-negative for all values in the symbols' ranges.
bool provably_not_negative(const Dim& a, const SymbolTable& symbols);
// True only if it holds for all values in the symbols' ranges.
bool is_proven(const Predicate& predicate, const SymbolTable& symbols);

// "mod(S, 2) == 0 & [S < T | T <= 4]"; parse_predicate reads it back. UserError INGOT-U105 contains the
// column.
std::string to_string(const Predicate& predicate);
Predicate parse_predicate(std::string_view text);

// For messages, as Python: "x.shape[0] % 2 == 0 and (...)". `name` spells a symbol.
using SymbolSpelling = std::function<std::string(const std::string& symbol)>;
std::string to_python(const Dim& dim, const SymbolSpelling& name);
std::string to_python(const Predicate& predicate, const SymbolSpelling& name);

}  // namespace ingot::core
