// SPDX-License-Identifier: Apache-2.0
// Complex calls by real ones. A complex value is imported as a tensor of reals with one more dim of size 2 at
// the end, as torch.view_as_real shows it; `Parts` are its two halves.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "importers/aten/converters/terms.h"

namespace ingot::core::aten {

struct Parts {
  Term re, im;
};

DType component_of(DType complex);  // itself if it is real
// The parts of a pair. Those of a value made by `joined` are its operands: chains keep them apart.
Parts parts_of(Call& call, core::Value* pair);
core::Value* joined(Call& call, core::Value* re, core::Value* im);

// Runs a converter for reals on chosen parts of a complex call's operands. Values that it does not own are
// sizes and numbers, which it asks `outer` for.
class PartScope final : public Scope {
 public:
  explicit PartScope(Scope& outer) : outer_(outer) {}

  ValueId bind(core::Value* tensor);      // an operand
  ValueId expect(TensorMeta recorded);    // a result; complex ones are recorded as their components
  core::Value* result(ValueId id) const;  // null if the converter did not give it

  core::Graph& graph() override { return outer_.graph(); }
  const Value& value(ValueId id) const override;
  core::Value* tensor(ValueId id) override;
  std::optional<Dim> integer(ValueId id) override { return outer_.integer(id); }
  std::optional<double> number(ValueId id) override { return outer_.number(id); }
  void give(ValueId id, ImportedValue result) override;
  RandomSource* random() override { return outer_.random(); }

 private:
  struct Own {
    Value value;
    core::Value* tensor = nullptr;
  };
  static constexpr ValueId kFirst = ValueId{1} << 31;

  Scope& outer_;
  std::deque<Own> own_;
};

}  // namespace ingot::core::aten
