// SPDX-License-Identifier: Apache-2.0
#include "plan/own_storage.h"

#include <algorithm>

namespace ingot::core {

Storage own_storage(const TensorType& type, const SymbolTable& symbols) {
  constexpr int64_t kAlignment = 64;
  const Dim bytes = storage_bytes(type);
  const auto is_step_bound = [&](const std::string& symbol) {
    const auto found = symbols.find(symbol);
    return found != symbols.end() && found->second.upper_bound.has_value();
  };
  if (std::ranges::any_of(bytes.symbols(), is_step_bound)) return DynamicStorage{};
  return ArenaStorage{.bytes = ceil_divide(bytes, kAlignment) * Dim(kAlignment), .above = {}};
}

}  // namespace ingot::core
