// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "types/dim.h"

namespace ingot::core::pt2 {

// Expressions that Dim cannot represent, each as a new symbol, the same for equal text.
class OpaqueDims {
 public:
  explicit OpaqueDims(SymbolTable& symbols) : symbols_(symbols) {}

  Dim of(std::string_view text);
  SymbolTable& symbols() { return symbols_; }

 private:
  SymbolTable& symbols_;
  std::unordered_map<std::string, Dim> known_;
};

}  // namespace ingot::core::pt2
