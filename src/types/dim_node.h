// SPDX-License-Identifier: Apache-2.0
// How dims are stored, and the polynomials that their arithmetic works on. Private to src/types/dim*.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "types/checked_arithmetic.h"
#include "types/dim.h"

namespace ingot::core {

// Operands: kAdd: the terms, the constant last; kMultiply: the coefficient (unless it is 1), then the atoms;
// kFloorDivide and kModulo: dividend and divisor; kMaximum and kMinimum: all operands, a constant last.
struct DimNode {
  Dim::Kind kind;
  std::string name;  // kSymbol only
  std::vector<Dim> operands;
  size_t hash;
};

struct DimFactory {
  static Dim make(Dim::Kind kind, std::vector<Dim> operands, std::string name = {});
  static const DimNode* node(const Dim& dim) { return dim.node_.get(); }
};

// A monomial is a sorted list of atoms; the empty one is the constant term.
struct DimTerm {
  int64_t coefficient;
  std::vector<Dim> atoms;
};
// Sorted by `monomial_before`; no zero coefficients, no duplicate monomials.
using Polynomial = std::vector<DimTerm>;

// Higher degree first, then by atoms: multiplication preserves this order, which exact division needs.
bool monomial_before(const std::vector<Dim>& a, const std::vector<Dim>& b);
Polynomial to_polynomial(const Dim& dim);
Dim to_dim(Polynomial terms);
Polynomial add(const Polynomial& a, const Polynomial& b);
Polynomial multiply(const Polynomial& a, const DimTerm& term);
// a's monomial divided by b's, if every atom of b is in a.
std::optional<std::vector<Dim>> divide_monomial(const std::vector<Dim>& a, const std::vector<Dim>& b);

// The interval of values over all values of the symbols.
DimRange intrinsic_range(const Dim& dim);
// a - b, or nullopt if that overflows.
std::optional<Dim> try_subtract(const Dim& a, const Dim& b);

}  // namespace ingot::core
