// SPDX-License-Identifier: Apache-2.0
// Dims as i64 code.
#pragma once

#include <map>
#include <string>
#include <unordered_map>

#include "backends/cpu/compile/llvm/control_flow.h"
#include "types/dim.h"

namespace ingot::core::cpu {

// Emits scalar i64 values of dims at the builder's position. Caches nothing between calls: common
// subexpressions are left to EarlyCSE and GVN. `values` has every symbol that the dims use; `symbols` their
// ranges (unsigned division needs them).
struct DimEmitter {
  Builder& builder;
  std::map<std::string, llvm::Value*, std::less<>> values;
  const SymbolTable& symbols;

  llvm::Value* emit(const Dim& dim) const;
};

}  // namespace ingot::core::cpu
