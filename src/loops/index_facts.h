// SPDX-License-Identifier: Apache-2.0
// Facts about the symbols in indices, and the simplifications that follow from them.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "loops/kernel.h"

namespace ingot::core::loops {

// Variables count from 0 to extent - 1; other symbols have ranges.
class IndexFacts {
 public:
  explicit IndexFacts(const SymbolTable& symbols) : ranges_(symbols) {}
  void add(const Loop& loop);

  const SymbolTable& ranges() const { return ranges_; }
  bool is_not_negative(const Dim& dim) const { return range_of(dim, ranges_).min >= 0; }
  bool is_below(const Dim& dim, const Dim& limit) const;  // for all values of the variables
  bool divides(const Dim& divisor, const Dim& dim) const;

  // Divisions and remainders of sums of variables disappear where the variables' extents allow it: (16*i + j)
  // // 16 is i, and (16*i + j) % 16 is j, for j < 16.
  Dim simplify(const Dim& dim) const;

 private:
  std::optional<Dim> largest(const Dim& dim) const;
  Dim simplify_quotient(const Dim& dividend, const Dim& divisor) const;
  Dim simplify_remainder(const Dim& dividend, const Dim& divisor) const;
  struct Parts {
    Dim high, low, unit;  // high * unit + low, 0 <= low < unit
  };
  std::optional<Parts> split(const Dim& dividend, const Dim& divisor) const;

  SymbolTable ranges_;               // of the variables as well
  std::map<std::string, Dim> last_;  // last value of each variable
};

// Elements between neighbours along `variable`; nullopt if `offset` is not linear in it, 0 if it does not
// depend on it.
std::optional<Dim> stride_along(const Dim& offset, const std::string& variable);

}  // namespace ingot::core::loops
