// SPDX-License-Identifier: Apache-2.0
// One ATen call while it is imported: arguments by the schema's names, results by the order of its returns.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "importers/aten/program/aten_graph.h"
#include "ir/graph.h"

namespace ingot::core::aten {

// What a value of the ATen graph became.
using ImportedValue = std::variant<std::monostate, core::Value*, Dim, double>;

// Where a call finds the values that its arguments name.
class Scope {
 public:
  virtual ~Scope() = default;
  virtual core::Graph& graph() = 0;
  virtual const Value& value(ValueId id) const = 0;      // as the front end described it
  virtual core::Value* tensor(ValueId id) = 0;           // current value, after writes through aliases
  virtual std::optional<Dim> integer(ValueId id) = 0;    // of a SymInt
  virtual std::optional<double> number(ValueId id) = 0;  // of a SymFloat that is known
  virtual void give(ValueId id, ImportedValue result) = 0;
};

// All accessors throw UnsupportedError naming node, argument and source line if the argument cannot be had in
// that form.
class Call {
 public:
  Call(Scope& scope, const Node& node) : scope_(scope), node_(node) {}

  const Node& node() const { return node_; }
  core::Graph& graph() { return scope_.graph(); }

  bool has(std::string_view name) const;  // given, and not None
  core::Value* tensor(std::string_view name);
  core::Value* optional_tensor(std::string_view name);                // null for None
  std::vector<core::Value*> tensors(std::string_view name);           // refuses None
  std::vector<core::Value*> optional_tensors(std::string_view name);  // null entries for None
  // A tensor, or a number as a 0-d constant of `dtype` (its own dtype if nullopt: i64, f32 or bool).
  core::Value* tensor_or_number(std::string_view name, std::optional<DType> dtype = std::nullopt);
  bool is_tensor(std::string_view name) const;
  const TensorMeta& tensor_meta(std::string_view name) const;  // what the front end knows of it

  Dim dim(std::string_view name);
  std::vector<Dim> dims(std::string_view name);
  int64_t integer(std::string_view name);                // constant
  std::vector<int64_t> integers(std::string_view name);  // constants; a single number is a list of one
  std::vector<int64_t> integers(std::string_view name, size_t count);  // refuses another number of them
  double number(std::string_view name);                                // int, float or bool
  std::optional<double> known_number(std::string_view name);  // none if it follows from sizes or data
  std::vector<double> numbers(std::string_view name);
  bool is_floating_number(std::string_view name) const;
  // Operands of Python's operators, which have no names; none if the value is not known now.
  std::optional<Dim> size_at(size_t position);
  std::optional<double> number_at(size_t position);
  bool flag(std::string_view name);
  std::string text(std::string_view name);  // "" for None
  std::optional<DType> dtype(std::string_view name);
  size_t axis(std::string_view name, size_t rank);  // negative ones count from the end
  std::vector<int64_t> axes(std::string_view name,
                            size_t rank);  // sorted; all of them for None or an empty list
  std::vector<size_t> axes_in_order(std::string_view name, size_t rank);  // as given; refuses one given twice

  // What the front end knows of the first result.
  const TensorMeta& result_meta(size_t index = 0) const;
  size_t result_count() const { return node_.outputs.size(); }

  void give(core::Value* result) { give(0, result); }
  void give(size_t index, core::Value* result);
  void give(const Dim& result);
  void give_number(double result);

  [[noreturn]] void refuse(const std::string& reason) const;
  // Of what torch sees to and a file may break.
  void require(bool condition, std::string_view reason) const {
    if (!condition) refuse(std::string(reason));
  }

 private:
  const Argument* find(std::string_view name) const;
  const Argument& get(std::string_view name) const;
  core::Value* tensor_of(const Argument& argument, std::string_view name);
  std::optional<Dim> dim_of(const Argument& argument);
  std::optional<double> number_of(const Argument& argument);
  size_t checked_axis(std::string_view name, int64_t given, size_t rank) const;

  Scope& scope_;
  const Node& node_;
};

// Refuses, in the name of the node that is imported, what is no number of 64 bits.
int64_t whole_number(const core::Graph& graph, double value);
// A number as a 0-d tensor.
core::Value* number_constant(core::Graph& graph, double value, DType dtype);
core::Value* converted(core::Graph& graph, core::Value* value, DType dtype);  // itself if it has that dtype

}  // namespace ingot::core::aten
