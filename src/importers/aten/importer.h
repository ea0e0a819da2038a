// SPDX-License-Identifier: Apache-2.0
// The state of one import: values, aliases, and writes replayed as pure nodes.
#pragma once

#include <map>
#include <vector>

#include "importers/aten/converters/call.h"
#include "importers/aten/converters/converters.h"
#include "importers/aten/program/aten_graph.h"
#include "importers/aten/schema/aliases.h"

namespace ingot::core::aten {

// "aten.add_.Tensor" -> "aten.add.Tensor".
std::string functional_target(std::string_view target);

// Operators that only run their graph in a mode that is irrelevant for inference.
bool is_transparent(const Node& node);

// Imports the nodes of one ATen graph into our graph. A write through a view is scattered into its base;
// other views of that memory are recomputed when they are next read.
class Importer final : public Scope {
 public:
  Importer(const Graph& source, core::Graph& graph);

  void bind(ValueId id, ImportedValue value) { slots_[id] = std::move(value); }
  void run();

  core::Graph& graph() override { return graph_; }
  const Value& value(ValueId id) const override { return source_.values[id]; }
  core::Value* tensor(ValueId id) override;
  std::optional<Dim> integer(ValueId id) override;
  std::optional<double> number(ValueId id) override;
  void give(ValueId id, ImportedValue result) override;

  const Aliases& aliases() const { return aliases_; }

 private:
  void import_node(size_t index);
  void apply(const Converter& converter, const Node& node);
  void import_in_place(size_t index);
  const Converter& converter_of(const Node& node, const Node& reported) const;
  void inline_graph(const Node& node);  // wrap_with_set_grad_enabled and similar
  [[noreturn]] void refuse_missing(ValueId id) const;
  void write(ValueId id, core::Value* value);
  core::Value* scattered(core::Value* whole, core::Value* view, core::Value* written, const Node& node);
  core::Value* scattered_once(core::Value* view, core::Value* written, const Node& node);

  const Graph& source_;
  core::Graph& graph_;
  Aliases aliases_;
  size_t position_ = 0;            // number of nodes imported
  size_t depth_ = 0, remade_ = 0;  // views being recomputed now, and in total
  std::vector<ImportedValue> slots_;
  std::vector<uint64_t> seen_;            // by value: the version of its root that it reflects
  std::map<ValueId, uint64_t> versions_;  // by root: number of writes
};

}  // namespace ingot::core::aten
