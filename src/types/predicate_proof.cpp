// SPDX-License-Identifier: Apache-2.0
// Proofs from the ranges of symbols.
#include <optional>

#include "support/error.h"
#include "types/dim_node.h"
#include "types/predicate.h"

namespace ingot::core {
namespace {

constexpr int kMostEliminations = 8;

// A term coefficient * floor_divide(a, d) with a constant d > 0, alone in its monomial.
const DimTerm* find_quotient(const Polynomial& terms) {
  for (const DimTerm& term : terms) {
    if (term.atoms.size() != 1 || term.atoms[0].kind() != Dim::Kind::kFloorDivide) continue;
    if (term.atoms[0].operands()[1].constant().value_or(0) > 0) return &term;
  }
  return nullptr;
}

// d * `sum` with c * floor_divide(a, d) replaced by its lower bound: a - d + 1 <= d * floor_divide(a, d) <=
// a.
std::optional<Dim> without_quotient(const Dim& sum, const DimTerm& term) {
  const Dim &a = term.atoms[0].operands()[0], &d = term.atoms[0].operands()[1];
  const Dim coefficient = term.coefficient;
  const Dim bound = term.coefficient > 0 ? a - d + 1 : a;
  try {
    return d * (sum - coefficient * term.atoms[0]) + coefficient * bound;
  } catch (const Error&) {  // too large for 64 bits, or too many terms: nothing can be proven
    return std::nullopt;
  }
}

bool is_not_negative(const Dim& dim, const SymbolTable& symbols, int eliminations) {
  if (range_of(dim, symbols).min >= 0) return true;
  if (eliminations == 0) return false;
  const Polynomial terms = to_polynomial(dim);
  const DimTerm* quotient = find_quotient(terms);
  if (quotient == nullptr) return false;
  const auto bound = without_quotient(dim, *quotient);
  return bound && is_not_negative(*bound, symbols, eliminations - 1);
}

bool is_at_most(const Dim& a, const Dim& b, int64_t gap, const SymbolTable& symbols) {
  const auto difference = try_subtract(b, a);
  if (!difference) return false;
  const auto rest = try_subtract(*difference, gap);
  return rest && is_not_negative(*rest, symbols, kMostEliminations);
}

}  // namespace

bool provably_not_negative(const Dim& a, const SymbolTable& symbols) {
  return is_not_negative(a, symbols, kMostEliminations);
}

bool is_proven(const Predicate& predicate, const SymbolTable& symbols) {
  const Dim &a = predicate.left, &b = predicate.right;
  switch (predicate.kind) {
    case Predicate::Kind::kEqual:
      return provably_equal(a, b, symbols);
    case Predicate::Kind::kNotEqual:
      return is_at_most(a, b, 1, symbols) || is_at_most(b, a, 1, symbols);
    case Predicate::Kind::kLess:
      return is_at_most(a, b, 1, symbols);
    case Predicate::Kind::kAtMost:
      return is_at_most(a, b, 0, symbols);
    case Predicate::Kind::kAnd:
      return is_proven(predicate.parts[0], symbols) && is_proven(predicate.parts[1], symbols);
    case Predicate::Kind::kOr:
      return is_proven(predicate.parts[0], symbols) || is_proven(predicate.parts[1], symbols);
  }
  return false;
}

}  // namespace ingot::core
