// SPDX-License-Identifier: Apache-2.0
// Quotients of dims: torch computes them in floats before rounding to a size; supported if that is exact.
#pragma once

#include <optional>

#include "types/dim.h"

namespace ingot::core::aten {

// denominator > 0 for all values of the symbols.
struct Fraction {
  Dim numerator;
  Dim denominator = 1;
};
using Quantity = std::optional<Fraction>;  // nullopt: not expressible

Quantity fraction_of(double value);  // nullopt if it is not a small multiple of 2^-20
Quantity add(const Fraction& a, const Fraction& b);
Quantity multiply(const Fraction& a, const Fraction& b);
Quantity divide(const Fraction& a, const Fraction& b, const SymbolTable& symbols);
Quantity power(const Fraction& base, int64_t exponent);

// The fraction rounded to an integer towards minus infinity, plus infinity, zero.
Dim round_down(const Fraction& value);
Dim round_up(const Fraction& value);
std::optional<Dim> truncate(const Fraction& value,
                            const SymbolTable& symbols);  // nullopt if the sign is unknown

// `numerator`, or nullopt if there is a denominator.
std::optional<Dim> whole(const Fraction& value);

}  // namespace ingot::core::aten
