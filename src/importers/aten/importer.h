// SPDX-License-Identifier: Apache-2.0
// The state of one import: values, aliases, and writes replayed as pure nodes.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <vector>

#include "importers/aten/converters/call.h"
#include "importers/aten/converters/converters.h"
#include "importers/aten/program/aten_graph.h"
#include "importers/aten/program/size_symbols.h"
#include "importers/aten/schema/aliases.h"
#include "types/size_check.h"

namespace ingot::core::aten {

// "aten.add_.Tensor" -> "aten.add.Tensor".
std::string functional_target(std::string_view target);

// Operators that only run their graph in a mode that is irrelevant for inference.
bool is_transparent(const Node& node);

// Operators whose graphs run zero or more times.
bool is_control_flow(const Node& node);
std::vector<const Graph*> graphs_of(const Node& node);  // in its arguments

// Imports the nodes of one ATen graph into our graph. A write through a view is scattered into its base;
// other views of that memory are recomputed when they are next read.
class Importer final : public Scope {
 public:
  // `checks`: of the importer of the graph around this one.
  Importer(const Graph& source, core::Graph& graph, std::vector<SizeCheck>* checks = nullptr);

  void bind(ValueId id, ImportedValue value) { slots_[id] = std::move(value); }
  void run();

  core::Graph& graph() override { return graph_; }
  const Value& value(ValueId id) const override { return source_.values[id]; }
  core::Value* tensor(ValueId id) override;
  std::optional<Dim> integer(ValueId id) override;
  std::optional<double> number(ValueId id) override;
  core::Value* real_of_sizes(ValueId id) override;
  void give(ValueId id, ImportedValue result) override;
  bool decides_sizes(const std::string& symbol) const override {
    return aten::decides_sizes(source_, symbol);
  }
  RandomSource* random() override { return random_; }
  // Without it, and in branches and loops, random numbers are torch's.
  void draw_from(RandomSource* source) { random_ = source; }

  const Aliases& aliases() const { return aliases_; }
  // Conditions on sizes inside of branches and loops.
  const std::vector<SizeCheck>& nested_checks() const { return nested_checks_; }

 private:
  void import_node(size_t index);
  void apply(const Converter& converter, const Node& node);
  void drop_guards_after(size_t nodes_before);
  void import_in_place(size_t index);
  const Converter& converter_of(const Node& node, const Node& reported) const;
  void inline_graph(const Node& node);  // wrap_with_set_grad_enabled and similar
  void import_control_flow(const Node& node);
  void import_branch(const Node& node);
  void import_loop(const Node& node);
  void import_scan(const Node& node);
  void import_associative_scan(const Node& node);
  std::vector<core::Value*> combined_rows(const Node& node, core::Graph& body,
                                          std::span<const Argument* const> list,
                                          std::span<core::Value* const> values, size_t rows);
  std::vector<core::Value*> real_tensors_of(const Node& node, std::span<const Argument* const> operands);
  std::vector<bool> complex_ones(std::span<const Argument* const> operands) const;
  struct Scan;
  Scan scan_of(const Node& node) const;
  std::vector<core::Value*> loop_operands(const Node& node, const Scan& scan);
  std::vector<core::Value*> loop_results(const Node& node, core::Value* condition,
                                         std::vector<core::Value*> operands, std::vector<core::Graph> graphs,
                                         std::vector<core::Value*> results);
  bool is_tensor(const Argument& argument) const;
  bool is_complex_tensor(const Argument& argument) const;
  std::vector<core::Value*> tensors_of(std::span<const Argument* const> operands);
  std::vector<ValueId> bind_constants(const Node& call);
  void bind_operands(const Node& node, Importer& inner, std::span<const Argument* const> operands,
                     std::span<core::Value* const> values);
  std::vector<core::Value*> results_of(const Node& node);
  void take_nested_checks(core::Graph& body, const std::optional<Predicate>& unless);
  void give_results(const Node& node, const std::vector<core::Value*>& results);
  [[noreturn]] void refuse_missing(ValueId id) const;
  void write(ValueId id, core::Value* value);
  core::Value* scattered(core::Value* whole, core::Value* view, core::Value* written, const Node& node);
  core::Value* scattered_once(core::Value* view, core::Value* written, const Node& node);

  const Graph& source_;
  core::Graph& graph_;
  Aliases aliases_;
  std::set<ValueId> needed_;
  size_t position_ = 0;            // number of nodes imported
  size_t depth_ = 0, remade_ = 0;  // views being recomputed now, and in total
  std::vector<ImportedValue> slots_;
  std::vector<uint64_t> seen_;            // by value: the version of its root that it reflects
  std::map<ValueId, uint64_t> versions_;  // by root: number of writes
  std::vector<SizeCheck> nested_checks_;
  std::vector<SizeCheck>* checks_of_parent_;
  RandomSource* random_ = nullptr;
};

}  // namespace ingot::core::aten
