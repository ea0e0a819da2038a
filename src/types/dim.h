// SPDX-License-Identifier: Apache-2.0
// A dim is an integer expression over symbols, kept in one canonical form: equal forms are equal dims.
//
// Canonical form: a sum of a constant and of terms coefficient * product of atoms, sorted; an atom is a
// symbol or a floor_divide, modulo, maximum or minimum of canonical dims. Immutable and cheap to copy.
// Arithmetic is in int64; an overflow throws UserError. Division and modulo round towards minus infinity.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ingot::core {

struct DimNode;  // one atom or sum; defined in dim_node.h

class Dim {
 public:
  Dim() : Dim(0) {}
  Dim(int64_t value);                   // NOLINT: integers convert to dims
  static Dim symbol(std::string name);  // [A-Za-z_][A-Za-z0-9_.]*

  bool is_constant() const { return node_ == nullptr; }
  std::optional<int64_t> constant() const { return is_constant() ? std::optional(value_) : std::nullopt; }
  bool is_symbol() const;
  std::vector<std::string> symbols() const;  // sorted, each once

  std::string to_string() const;  // "2*S + floordiv(S + 1, 2)"; parse_dim reads it back
  size_t hash() const;
  bool operator==(const Dim& other) const;
  std::strong_ordering operator<=>(const Dim& other) const;  // an arbitrary total order

  // Read access to the structure, for visitors (evaluators, emitters, serializers).
  enum class Kind { kConstant, kSymbol, kAdd, kMultiply, kFloorDivide, kModulo, kMaximum, kMinimum };
  Kind kind() const;
  std::span<const Dim> operands() const;  // empty for constants and symbols
  const std::string& symbol_name() const;

  friend Dim operator+(const Dim& a, const Dim& b);
  friend Dim operator-(const Dim& a, const Dim& b);
  friend Dim operator*(const Dim& a, const Dim& b);

 private:
  friend struct DimFactory;
  int64_t value_ = 0;                    // if constant
  std::shared_ptr<const DimNode> node_;  // otherwise
};

Dim floor_divide(const Dim& a, const Dim& b);
Dim modulo(const Dim& a, const Dim& b);
Dim ceil_divide(const Dim& a, const Dim& b);  // floor_divide(a + b - 1, b)
Dim maximum(const Dim& a, const Dim& b);
Dim minimum(const Dim& a, const Dim& b);
Dim product(std::span<const Dim> dims);
// The dim of this kind over `a` and `b`; the kind is neither kConstant or kSymbol.
Dim combine(Dim::Kind kind, const Dim& a, const Dim& b);
Dim substitute(const Dim& dim, const std::map<std::string, Dim>& replacements);

// Bindings of symbols to values.
using SymbolValues = std::map<std::string, int64_t, std::less<>>;
int64_t evaluate(const Dim& dim, const SymbolValues& values);  // UserError names an unbound symbol

struct DimRange {
  int64_t min = 0;          // INT64_MIN: no bound
  int64_t max = INT64_MAX;  // INT64_MAX: no bound
  bool operator==(const DimRange&) const = default;
};

// A group of ranks, of which one runs the program.
struct RankAxis {
  std::string group;
  int64_t ranks = 1;
  bool operator==(const RankAxis&) const = default;
};

// The value of a symbol on each rank: a row-major table over the rank's positions in these groups.
struct RankSizes {
  std::vector<RankAxis> axes;
  std::vector<int64_t> sizes;
  bool operator==(const RankSizes&) const = default;
};

// What is known about a symbol. A symbol is bound by an input's dim, by a step at run time ("step-bound"),
// and then has an upper bound as an expression, or by the groups of the context ("rank symbol").
struct SymbolInfo {
  DimRange range;
  std::optional<int64_t> typical;    // the size to optimize for
  std::optional<Dim> upper_bound;    // step-bound symbols only
  std::optional<RankSizes> by_rank;  // rank symbols only
  bool operator==(const SymbolInfo&) const = default;
};
using SymbolTable = std::map<std::string, SymbolInfo, std::less<>>;
// The value of each symbol to optimize for: its typical size, or a moderate one within its range.
SymbolValues typical_sizes(const SymbolTable& symbols);

// Interval arithmetic, saturating. A symbol missing from the table may have any value, including negative
// ones. Rank symbols have the values of one rank together, so that a sum of them has exact bounds.
DimRange range_of(const Dim& dim, const SymbolTable& symbols);
// True only if the relation holds for all values in the symbols' ranges.
bool provably_equal(const Dim& a, const Dim& b, const SymbolTable& symbols);
bool provably_less(const Dim& a, const Dim& b, const SymbolTable& symbols);

Dim parse_dim(std::string_view text);         // inverse of to_string; UserError contains the column
Dim parse_kernel_dim(std::string_view text);  // the same, where names may be variables (symbol_name.h)

}  // namespace ingot::core

template <>
struct std::hash<ingot::core::Dim> {
  size_t operator()(const ingot::core::Dim& dim) const { return dim.hash(); }
};
