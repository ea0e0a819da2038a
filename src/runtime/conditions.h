// SPDX-License-Identifier: Apache-2.0
// The conditions on sizes of an engine, ready to be asked: once per new shape.
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
  // `symbols`: the names whose values `require` gets, in order; those of the conditions are among them.
  // Borrows the engine's data.
  Conditions(const EngineData& data, std::span<const std::string> symbols);

  // UserError INGOT-U312 for the first condition that these sizes break. A part of a condition that does not
  // matter is not evaluated: "S == 0 or 8 % S == 0" divides by no zero.
  void require(std::span<const int64_t> symbols) const;

 private:
  struct Item {
    Predicate::Kind kind;
    uint32_t left, right;  // slots of comparisons, else positions in items_
  };
  uint32_t add(const Predicate& predicate);
  bool holds(const Item& item, std::span<const int64_t> symbols) const;
  [[noreturn]] void fail(const SizeCheck& check, std::span<const int64_t> symbols) const;

  const EngineData* data_ = nullptr;
  DimTable dims_;
  std::vector<Item> items_;
  std::vector<uint32_t> roots_;  // one per condition
};

}  // namespace ingot::core
