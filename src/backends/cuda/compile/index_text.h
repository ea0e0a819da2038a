// SPDX-License-Identifier: Apache-2.0
// Dims as CUDA C++ expressions.
#pragma once

#include <map>
#include <string>

#include "loops/kernel.h"

namespace ingot::core::cuda {

// The names of symbols and loop variables in the code, and the ranges of their values. Scopes are
// copied: a stage adds its own variables to a copy of the kernel's.
struct IndexScope {
  SymbolTable ranges;
  std::map<std::string, std::string, std::less<>> names;  // symbol -> identifier

  void add(const std::string& symbol, std::string identifier, DimRange range);
  // A loop variable counts from 0 to below the extent.
  void add(const loops::Loop& loop, std::string identifier);
  std::string text(const Dim& dim) const;  // in parentheses where it is not one word
};

// True if a value of `dim`, or of a part of it, may not fit 32 bits.
bool needs_64_bits(const Dim& dim, const SymbolTable& ranges);
// The same of any index, extent or count of a kernel.
bool needs_64_bits(const loops::Kernel& kernel, const SymbolTable& ranges);

}  // namespace ingot::core::cuda
