// SPDX-License-Identifier: Apache-2.0
// The conditions on sizes of an engine, compiled for evaluation once per new shape.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/dim_table.h"
#include "engine/engine_data.h"

namespace ingot::core {

class Conditions {
 public:
  Conditions() = default;
  // `symbols`: the names of the values that `require` takes, in order; they include those of the conditions.
  // `late`: one per symbol, true if a step binds it. Borrows the engine's data.
  Conditions(const EngineData& data, std::span<const std::string> symbols, const std::vector<bool>& late);

  // UserError INGOT-U312 for the first condition that these sizes break, of those that depend on inputs
  // alone. Evaluation short-circuits: "S == 0 or 8 % S == 0" does not divide by zero.
  void require(std::span<const int64_t> symbols) const;
  // The same for the other conditions, once all of their symbols are bound; `is_new` is the symbol that was
  // bound last.
  void require_late(std::span<const int64_t> symbols, const std::vector<bool>& bound, uint32_t is_new) const;

 private:
  struct Item {
    Predicate::Kind kind;
    uint32_t left, right;  // slots of comparisons, otherwise positions in items_
  };
  uint32_t add(const Predicate& predicate);
  bool holds(const Item& item, std::span<const int64_t> symbols) const;
  [[noreturn]] void fail(const SizeCheck& check, std::span<const int64_t> symbols) const;

  const EngineData* data_ = nullptr;
  DimTable dims_;
  std::vector<Item> items_;
  struct Root {
    uint32_t item, check;           // position in items_, and in the engine's checks
    std::vector<uint32_t> symbols;  // that steps bind
  };
  std::vector<Root> early_, late_;
};

}  // namespace ingot::core
