// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "importers/aten/program/fraction.h"
#include "importers/pt2/opaque_dims.h"

namespace ingot::core::pt2 {

using aten::Fraction;
using aten::fraction_of;
using aten::Quantity;

// Recursive descent over both spellings of a sympy expression: "Add(Symbol('s0', integer=True), Integer(1))"
// and "s0 + 1". The first is a subset of the second with calls.
class ExpressionParser {
 public:
  ExpressionParser(std::string_view text, OpaqueDims& dims) : text_(text), rest_(text), dims_(dims) {}
  Dim parse();

 private:
  Quantity sum();
  Quantity term();
  Quantity factor();
  Quantity primary();
  Quantity number();
  Quantity call(std::string_view name, std::string_view begin);
  Quantity literal_call(std::string_view name);
  std::vector<Quantity> arguments();
  Quantity apply(std::string_view name, const std::vector<Quantity>& arguments);
  Quantity apply_two(std::string_view name, const Fraction& a, const Fraction& b);
  Quantity divide_whole(std::string_view name, const Dim& a, const Dim& b);
  Quantity symbol(std::string_view name);

  void skip_spaces();
  bool accept(std::string_view token);
  std::string_view word();
  std::string_view quoted();
  void skip_keywords();
  void skip_call();
  [[noreturn]] void fail(std::string_view expected) const;

  std::string_view text_;
  std::string_view rest_;
  OpaqueDims& dims_;
  int depth_ = 0;
};

}  // namespace ingot::core::pt2
