// SPDX-License-Identifier: Apache-2.0
// Symbolic sizes of an exported program: sympy's srepr (or, from older writers, str) becomes a Dim.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "types/dim.h"

namespace ingot::core::pt2 {

// What Dim cannot express (rounding of inexact floats, where, ...) becomes a symbol of its own, the same one
// for the same text: a node of the graph computes it. Symbols that the table lacks are added to it.
class DimReader {
 public:
  explicit DimReader(SymbolTable& symbols) : symbols_(symbols) {}

  // UserError INGOT-U508 if the text is malformed, too long or nests too deep.
  Dim read(const std::string& expression);

  void set_typical(const std::string& symbol, int64_t size) { symbols_[symbol].typical = size; }

 private:
  friend class ExpressionParser;
  Dim opaque(std::string_view text);

  SymbolTable& symbols_;
  std::unordered_map<std::string, Dim> known_;   // expressions read before
  std::unordered_map<std::string, Dim> opaque_;  // texts that stand for themselves
};

}  // namespace ingot::core::pt2
