// SPDX-License-Identifier: Apache-2.0
// Checked integers, and sums and products in canonical form.
#include <algorithm>

#include <fmt/core.h>

#include "support/error.h"
#include "types/dim_node.h"

namespace ingot::core {
namespace {

constexpr size_t kMaximumTerms = 4096;   // products of long sums grow exponentially
constexpr size_t kMaximumDegree = 1024;  // and so do squares of squares

[[noreturn]] void overflow(int64_t a, char operation, int64_t b) {
  throw UserError("INGOT-U101",
                  fmt::format("a size or an integer overflows 64 bits: {} {} {}", a, operation, b),
                  "use smaller shapes or integers");
}

[[noreturn]] void too_long() {
  throw UnsupportedError("INGOT-N102", "a product of sizes has more than 4096 terms");
}

Polynomial negate(const Polynomial& terms) { return multiply(terms, {-1, {}}); }

// c * m * floordiv(x, m) + c * mod(x, m) is c * x: the result of splitting an index and joining it again.
std::optional<Dim> join_quotient(const Polynomial& terms) {
  for (const DimTerm& rest : terms) {
    if (rest.atoms.size() != 1 || rest.atoms[0].kind() != Dim::Kind::kModulo) continue;
    const Dim& value = rest.atoms[0].operands()[0];
    const Dim& divisor = rest.atoms[0].operands()[1];
    const Polynomial whole = to_polynomial(floor_divide(value, divisor) * divisor * Dim(rest.coefficient));
    if (whole.size() != 1) continue;
    for (const DimTerm& candidate : terms) {
      if (candidate.coefficient != whole[0].coefficient || candidate.atoms != whole[0].atoms) continue;
      Polynomial others;
      for (const DimTerm& term : terms) {
        if (&term != &rest && &term != &candidate) others.push_back(term);
      }
      return to_dim(std::move(others)) + value * Dim(rest.coefficient);
    }
  }
  return std::nullopt;
}

Dim joined(Polynomial terms) {
  if (auto result = join_quotient(terms)) return *result;
  return to_dim(std::move(terms));
}

bool is_atom(const Dim& dim) {
  return !dim.is_constant() && dim.kind() != Dim::Kind::kAdd && dim.kind() != Dim::Kind::kMultiply;
}

// dim * factor, where factor is a constant or an atom, so that no terms combine.
Dim scale(const Dim& dim, const Dim& factor) {
  const auto constant = factor.constant();
  return to_dim(multiply(to_polynomial(dim), constant ? DimTerm{*constant, {}} : DimTerm{1, {factor}}));
}

}  // namespace

int64_t checked_add(int64_t a, int64_t b) {
  int64_t result;
  if (__builtin_add_overflow(a, b, &result)) overflow(a, '+', b);
  return result;
}

int64_t checked_multiply(int64_t a, int64_t b) {
  int64_t result;
  if (__builtin_mul_overflow(a, b, &result)) overflow(a, '*', b);
  return result;
}

int64_t checked_floor_divide(int64_t a, int64_t b) {
  if (b == 0) throw UserError("INGOT-U102", fmt::format("a size is divided by zero: {} // 0", a));
  if (b == -1) return checked_multiply(a, -1);
  return a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}

int64_t checked_modulo(int64_t a, int64_t b) {
  if (b == 0) throw UserError("INGOT-U102", fmt::format("a size is divided by zero: {} % 0", a));
  if (b == -1) return 0;
  const int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

bool monomial_before(const std::vector<Dim>& a, const std::vector<Dim>& b) {
  return a.size() != b.size() ? a.size() > b.size() : a < b;
}

Polynomial add(const Polynomial& a, const Polynomial& b) {
  Polynomial result;
  result.reserve(a.size() + b.size());
  auto left = a.begin();
  auto right = b.begin();
  while (left != a.end() && right != b.end()) {
    if (left->atoms == right->atoms) {
      const int64_t coefficient = checked_add(left->coefficient, right->coefficient);
      if (coefficient != 0) result.push_back({coefficient, left->atoms});
      ++left, ++right;
    } else {
      result.push_back(monomial_before(left->atoms, right->atoms) ? *left++ : *right++);
    }
  }
  result.insert(result.end(), left, a.end());
  result.insert(result.end(), right, b.end());
  return result;
}

Polynomial multiply(const Polynomial& a, const DimTerm& term) {
  Polynomial result = a;  // multiplication keeps the order of monomials
  for (DimTerm& each : result) {
    if (each.atoms.size() + term.atoms.size() > kMaximumDegree) too_long();
    each.coefficient = checked_multiply(each.coefficient, term.coefficient);
    each.atoms.insert(each.atoms.end(), term.atoms.begin(), term.atoms.end());
    std::ranges::sort(each.atoms);
  }
  return result;
}

std::optional<std::vector<Dim>> divide_monomial(const std::vector<Dim>& a, const std::vector<Dim>& b) {
  if (!std::includes(a.begin(), a.end(), b.begin(), b.end())) return std::nullopt;
  std::vector<Dim> result;
  std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(result));
  return result;
}

Dim operator+(const Dim& a, const Dim& b) {
  if (a.is_constant() && b.is_constant()) return checked_add(*a.constant(), *b.constant());
  if (a == Dim(0)) return b;
  if (b == Dim(0)) return a;
  return joined(add(to_polynomial(a), to_polynomial(b)));
}

Dim operator-(const Dim& a, const Dim& b) {
  if (b == Dim(0)) return a;
  if (a.is_constant() && b.is_constant()) {
    int64_t result;
    if (__builtin_sub_overflow(*a.constant(), *b.constant(), &result))
      overflow(*a.constant(), '-', *b.constant());
    return result;
  }
  return joined(add(to_polynomial(a), negate(to_polynomial(b))));
}

Dim operator*(const Dim& a, const Dim& b) {
  if (a.is_constant() && b.is_constant()) return checked_multiply(*a.constant(), *b.constant());
  if (a == Dim(0) || b == Dim(0)) return 0;
  if (a == Dim(1)) return b;
  if (b == Dim(1)) return a;
  if (a.is_constant() || is_atom(a)) return scale(b, a);
  if (b.is_constant() || is_atom(b)) return scale(a, b);
  const Polynomial left = to_polynomial(a);
  const Polynomial right = to_polynomial(b);
  if (left.size() * right.size() > kMaximumTerms) too_long();
  Polynomial terms;
  for (const DimTerm& term : right) terms = add(terms, multiply(left, term));
  return joined(std::move(terms));
}

Dim product(std::span<const Dim> dims) {
  Dim result = 1;
  for (const Dim& dim : dims) result = result * dim;
  return result;
}

std::optional<Dim> try_subtract(const Dim& a, const Dim& b) {
  try {
    return a - b;
  } catch (const UserError&) {
    return std::nullopt;  // overflow
  }
}

}  // namespace ingot::core
