// SPDX-License-Identifier: Apache-2.0
// Parses symbolic sizes of an exported program: sympy's srepr (or, from older writers, str) becomes a Dim.
#pragma once

#include <string>
#include <unordered_map>

#include "importers/pt2/opaque_dims.h"

namespace ingot::core::pt2 {

// Expressions that Dim cannot represent (rounding of inexact floats, where, ...) become a new symbol, the
// same for equal text: a node of the graph computes it. Symbols missing from the table are added.
class DimReader {
 public:
  explicit DimReader(SymbolTable& symbols) : opaque_(symbols) {}

  // UserError INGOT-U508 if the text is malformed, too long or nested too deeply.
  Dim read(const std::string& expression);

  void set_typical(const std::string& symbol, int64_t size) { opaque_.symbols()[symbol].typical = size; }

 private:
  OpaqueDims opaque_;
  std::unordered_map<std::string, Dim> known_;  // expressions read before
};

}  // namespace ingot::core::pt2
