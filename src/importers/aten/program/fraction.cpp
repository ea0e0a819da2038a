// SPDX-License-Identifier: Apache-2.0
#include "importers/aten/program/fraction.h"

#include <cmath>

namespace ingot::core::aten {
namespace {

constexpr size_t kMaximumTerms = 256;  // products of sums expand: limits malicious files
constexpr int64_t kMaximumExponent = 8;

size_t terms(const Dim& dim) { return dim.kind() == Dim::Kind::kAdd ? dim.operands().size() : 1; }

bool is_small(const Dim& a, const Dim& b) { return terms(a) * terms(b) <= kMaximumTerms; }

std::optional<Dim> product(const Dim& a, const Dim& b) {
  if (!is_small(a, b)) return std::nullopt;
  return a * b;
}

}  // namespace

Quantity fraction_of(double value) {
  constexpr double kScale = 1 << 20, kLimit = 1LL << 52;
  const double scaled = value * kScale;
  if (!(std::abs(scaled) < kLimit) || scaled != std::trunc(scaled)) return std::nullopt;
  int64_t numerator = static_cast<int64_t>(scaled), denominator = static_cast<int64_t>(kScale);
  while (denominator > 1 && numerator % 2 == 0) {
    numerator /= 2;
    denominator /= 2;
  }
  return Fraction{numerator, denominator};
}

Quantity add(const Fraction& a, const Fraction& b) {
  if (a.denominator == b.denominator) return Fraction{a.numerator + b.numerator, a.denominator};
  const auto left = product(a.numerator, b.denominator), right = product(b.numerator, a.denominator);
  const auto denominator = product(a.denominator, b.denominator);
  if (!left || !right || !denominator) return std::nullopt;
  return Fraction{*left + *right, *denominator};
}

Quantity multiply(const Fraction& a, const Fraction& b) {
  const auto numerator = product(a.numerator, b.numerator);
  const auto denominator = product(a.denominator, b.denominator);
  if (!numerator || !denominator) return std::nullopt;
  return Fraction{*numerator, *denominator};
}

Quantity divide(const Fraction& a, const Fraction& b, const SymbolTable& symbols) {
  if (range_of(b.numerator, symbols).min <= 0) return std::nullopt;
  return multiply(a, {b.denominator, b.numerator});
}

Quantity power(const Fraction& base, int64_t exponent) {
  if (exponent < 0 || exponent > kMaximumExponent) return std::nullopt;
  Quantity result = Fraction{1};
  for (int64_t i = 0; i < exponent && result; ++i) result = multiply(*result, base);
  return result;
}

Dim round_down(const Fraction& value) { return floor_divide(value.numerator, value.denominator); }

Dim round_up(const Fraction& value) { return ceil_divide(value.numerator, value.denominator); }

std::optional<Dim> truncate(const Fraction& value, const SymbolTable& symbols) {
  const DimRange range = range_of(value.numerator, symbols);
  if (range.min >= 0) return round_down(value);
  if (range.max <= 0) return round_up(value);
  return whole(value);
}

std::optional<Dim> whole(const Fraction& value) {
  if (value.denominator == Dim(1)) return value.numerator;
  return std::nullopt;
}

}  // namespace ingot::core::aten
