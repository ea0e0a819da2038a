// SPDX-License-Identifier: Apache-2.0
// Floor division and modulo in canonical form.
#include <algorithm>
#include <numeric>

#include "types/dim_node.h"

namespace ingot::core {
namespace {

// dividend == divisor * quotient + factor * rest_dividend + rest_constant, and divisor == factor *
// rest_divisor, so that dividend // divisor == quotient + rest_dividend // rest_divisor.
struct Division {
  Polynomial quotient;
  Polynomial rest_dividend;
  Polynomial rest_divisor;
  DimTerm factor{1, {}};
  int64_t rest_constant = 0;
};

// Moves the exactly divisible terms into the quotient; of a constant, its largest multiple. The divisor is
// one term.
void split_by_term(const Polynomial& dividend, const DimTerm& divisor, Division& division) {
  for (const DimTerm& term : dividend) {
    const auto atoms = divide_monomial(term.atoms, divisor.atoms);
    if (atoms && term.coefficient % divisor.coefficient == 0) {
      division.quotient.push_back({term.coefficient / divisor.coefficient, *atoms});
    } else if (term.atoms.empty() && divisor.atoms.empty()) {
      const int64_t whole = checked_floor_divide(term.coefficient, divisor.coefficient);
      if (whole != 0) division.quotient.push_back({whole, {}});
      division.rest_dividend.push_back({checked_modulo(term.coefficient, divisor.coefficient), {}});
    } else {
      division.rest_dividend.push_back(term);
    }
  }
}

// The quotient of a division by a sum, if there is no remainder.
std::optional<Polynomial> divide_exactly(Polynomial dividend, const Polynomial& divisor) {
  Polynomial quotient;
  while (!dividend.empty()) {
    const auto atoms = divide_monomial(dividend[0].atoms, divisor[0].atoms);
    if (!atoms || checked_modulo(dividend[0].coefficient, divisor[0].coefficient) != 0) return std::nullopt;
    const DimTerm term{checked_floor_divide(dividend[0].coefficient, divisor[0].coefficient), *atoms};
    dividend = add(dividend, multiply(divisor, {checked_multiply(term.coefficient, -1), term.atoms}));
    quotient.push_back(term);  // leading terms come in order
  }
  return quotient;
}

// The greatest common divisor; half of it for two INT64_MIN, since int64 cannot represent it.
int64_t common_divisor(int64_t a, int64_t b) {
  const auto magnitude = [](int64_t value) {
    const auto bits = static_cast<uint64_t>(value);
    return value < 0 ? 0 - bits : bits;
  };
  const uint64_t divisor = std::gcd(magnitude(a), magnitude(b));
  return static_cast<int64_t>(divisor > INT64_MAX ? divisor / 2 : divisor);
}

DimTerm common_factor(const Polynomial& dividend, const Polynomial& divisor) {
  const bool constant_divisor = divisor[0].atoms.empty();
  DimTerm factor = divisor[0];
  const auto include = [&](const DimTerm& term) {
    std::vector<Dim> shared;
    std::set_intersection(factor.atoms.begin(), factor.atoms.end(), term.atoms.begin(), term.atoms.end(),
                          std::back_inserter(shared));
    factor = {common_divisor(factor.coefficient, term.coefficient), std::move(shared)};
  };
  for (const DimTerm& term : divisor) include(term);
  for (const DimTerm& term : dividend) {
    if (!constant_divisor || !term.atoms.empty()) include(term);
  }
  return factor;
}

void divide_terms(Polynomial& terms, const DimTerm& factor) {
  for (DimTerm& term : terms) {
    term.coefficient = checked_floor_divide(term.coefficient, factor.coefficient);
    term.atoms = *divide_monomial(term.atoms, factor.atoms);
  }
  std::erase_if(terms, [](const DimTerm& term) { return term.coefficient == 0; });
}

Division divide(const Polynomial& dividend, const Polynomial& divisor) {
  Division division;
  division.rest_divisor = divisor;
  if (divisor.size() == 1) {
    split_by_term(dividend, divisor[0], division);
  } else if (auto quotient = divide_exactly(dividend, divisor)) {
    division.quotient = std::move(*quotient);
  } else {
    division.rest_dividend = dividend;
  }
  if (division.rest_dividend.empty()) return division;
  division.factor = common_factor(division.rest_dividend, divisor);
  // With a constant divisor, the factor need not divide the dividend's constant: (6*x + 1) // 4 is (3*x) //
  // 2.
  if (const DimTerm& last = division.rest_dividend.back(); last.atoms.empty() && divisor[0].atoms.empty()) {
    division.rest_constant = last.coefficient % division.factor.coefficient;
  }
  divide_terms(division.rest_dividend, division.factor);
  divide_terms(division.rest_divisor, division.factor);
  return division;
}

// (x // m + c) // d is (x + c * m) // (m * d) for positive constants m and d.
std::optional<Dim> merge_nested(const Dim& dividend, const Dim& divisor) {
  constexpr int64_t kLimit = int64_t{1} << 30;  // keeps the products far from overflow
  const bool shifted = dividend.kind() == Dim::Kind::kAdd && dividend.operands().size() == 2 &&
                       dividend.operands()[1].is_constant();
  const Dim inner = shifted ? dividend.operands()[0] : dividend;
  const Dim shift = shifted ? dividend.operands()[1] : Dim(0);
  if (inner.kind() != Dim::Kind::kFloorDivide) return std::nullopt;
  const auto small = [](const Dim& dim) {
    return dim.is_constant() && *dim.constant() > -kLimit && *dim.constant() < kLimit;
  };
  const Dim inner_divisor = inner.operands()[1];
  if (!small(inner_divisor) || !small(divisor) || !small(shift)) return std::nullopt;
  return floor_divide(inner.operands()[0] + shift * inner_divisor, inner_divisor * divisor);
}

// The quotient if it is the same for all values of the symbols.
std::optional<int64_t> constant_quotient(const Dim& dividend, const Dim& divisor) {
  if (!divisor.is_constant()) return std::nullopt;
  const DimRange range = intrinsic_range(dividend);
  if (range.min == INT64_MIN || range.max == INT64_MAX) return std::nullopt;
  const int64_t low = checked_floor_divide(range.min, *divisor.constant());
  return low == checked_floor_divide(range.max, *divisor.constant()) ? std::optional(low) : std::nullopt;
}

// Modulo a constant, multiples of it may be dropped from coefficients, and mod(x, m) is x if it divides m.
Dim reduce_terms(const Dim& dividend, int64_t divisor) {
  Dim result;
  for (DimTerm& term : to_polynomial(dividend)) {
    const int64_t coefficient = term.atoms.empty() ? term.coefficient : term.coefficient % divisor;
    const bool nested = term.atoms.size() == 1 && term.atoms[0].kind() == Dim::Kind::kModulo &&
                        term.atoms[0].operands()[1].is_constant() &&
                        *term.atoms[0].operands()[1].constant() % divisor == 0;
    if (nested) {
      result = result + reduce_terms(term.atoms[0].operands()[0], divisor) * Dim(coefficient);
    } else {
      Polynomial reduced;
      if (coefficient != 0) reduced.push_back({coefficient, std::move(term.atoms)});
      result = result + to_dim(std::move(reduced));
    }
  }
  return result;
}

}  // namespace

Dim floor_divide(const Dim& a, const Dim& b) {
  if (b.is_constant() && (a.is_constant() || *b.constant() == 0)) {
    return checked_floor_divide(a.constant().value_or(0), *b.constant());
  }
  if (b == Dim(1) || a == Dim(0)) return a;
  if (a == b) return 1;
  const Polynomial divisor = to_polynomial(b);
  if (divisor[0].coefficient < 0) return floor_divide(Dim(0) - a, Dim(0) - b);
  Division division = divide(to_polynomial(a), divisor);
  const Dim quotient = to_dim(std::move(division.quotient));
  const Dim dividend = to_dim(std::move(division.rest_dividend));
  const Dim rest_divisor = to_dim(std::move(division.rest_divisor));
  if (dividend == Dim(0)) return quotient;
  if (const auto constant = constant_quotient(dividend, rest_divisor)) return quotient + Dim(*constant);
  if (const auto merged = merge_nested(dividend, rest_divisor)) return quotient + *merged;
  return quotient + DimFactory::make(Dim::Kind::kFloorDivide, {dividend, rest_divisor});
}

Dim modulo(const Dim& a, const Dim& b) {
  if (b.is_constant() && (a.is_constant() || *b.constant() == 0)) {
    return checked_modulo(a.constant().value_or(0), *b.constant());
  }
  if (b == Dim(1) || a == b) return 0;
  if (a == Dim(0)) return a;
  const Polynomial divisor = to_polynomial(b);
  if (divisor[0].coefficient < 0) return Dim(0) - modulo(Dim(0) - a, Dim(0) - b);
  const Dim reduced = b.is_constant() ? reduce_terms(a, *b.constant()) : a;
  Division division = divide(to_polynomial(reduced), divisor);
  const Dim dividend = to_dim(std::move(division.rest_dividend));
  const Dim rest_divisor = to_dim(std::move(division.rest_divisor));
  if (dividend == Dim(0)) return division.rest_constant;
  const auto constant = constant_quotient(dividend, rest_divisor);
  const Dim rest = constant ? dividend - Dim(*constant) * rest_divisor
                            : DimFactory::make(Dim::Kind::kModulo, {dividend, rest_divisor});
  return rest * to_dim({division.factor}) + Dim(division.rest_constant);
}

Dim ceil_divide(const Dim& a, const Dim& b) { return floor_divide(a + b - Dim(1), b); }

}  // namespace ingot::core
