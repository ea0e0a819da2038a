// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <optional>

#include "importers/aten/converters/call.h"

namespace ingot::core::aten {

// Runs converters on values of their own, in the course of another call. Values that it does not own are
// the operands of that call, which it asks `outer` for.
class InnerScope final : public Scope {
 public:
  explicit InnerScope(Scope& outer) : outer_(outer), first_(outer.first_free_id()) {}

  ValueId bind(core::Value* tensor);           // an operand
  ValueId expect();                            // a result of a type that is not known
  ValueId expect(TensorMeta recorded);         // a result; complex ones are recorded as their components
  core::Value* result(ValueId id) const;       // null if the converter did not give it
  Argument result_argument(ValueId id) const;  // a tensor, a size or a number; None if it was not given

  core::Graph& graph() override { return outer_.graph(); }
  const Value& value(ValueId id) const override;
  core::Value* tensor(ValueId id) override;
  std::optional<Dim> integer(ValueId id) override;
  std::optional<double> number(ValueId id) override;
  core::Value* real_of_sizes(ValueId id) override;
  void give(ValueId id, ImportedValue result) override;
  bool decides_sizes(const std::string& symbol) const override { return outer_.decides_sizes(symbol); }
  RandomSource* random() override { return outer_.random(); }
  ValueId first_free_id() const override { return first_ + static_cast<ValueId>(own_.size()); }

 private:
  struct Own {
    Value value;
    ImportedValue imported;
  };
  bool owns(ValueId id) const { return id >= first_ && id < first_free_id(); }

  Scope& outer_;
  ValueId first_;
  std::deque<Own> own_;
};

}  // namespace ingot::core::aten
