// SPDX-License-Identifier: Apache-2.0
// One ATen call during import: arguments by the schema's names, results in the order of its returns.
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

struct RandomSource;

// A float that depends on the sizes of the inputs, or on data: f64 without dims.
struct RealOfSizes {
  core::Value* value = nullptr;
};

// The imported form of a value of the ATen graph.
using ImportedValue = std::variant<std::monostate, core::Value*, Dim, double, RealOfSizes>;

// Resolves the values that a call's arguments refer to.
class Scope {
 public:
  virtual ~Scope() = default;
  virtual core::Graph& graph() = 0;
  virtual const Value& value(ValueId id) const = 0;      // as the front end described it
  virtual core::Value* tensor(ValueId id) = 0;           // current value, after writes through aliases
  virtual std::optional<Dim> integer(ValueId id) = 0;    // of a SymInt
  virtual std::optional<double> number(ValueId id) = 0;  // of a SymFloat, if known
  virtual core::Value* real_of_sizes(
      ValueId id) = 0;  // of a SymFloat: f64 without dims; null if it is not one
  virtual void give(ValueId id, ImportedValue result) = 0;
  // Whether a size of a tensor depends on the symbol.
  virtual bool decides_sizes(const std::string& symbol) const = 0;
  virtual RandomSource* random() { return nullptr; }  // null: random numbers are torch's
  // Ids from here on are free for values of a scope inside of this one, while that lives.
  virtual ValueId first_free_id() const { return ValueId{1} << 31; }
};

// All accessors throw UnsupportedError naming node, argument and source line if the argument does not have
// that form.
class Call {
 public:
  Call(Scope& scope, const Node& node) : scope_(scope), node_(node) {}

  const Node& node() const { return node_; }
  core::Graph& graph() { return scope_.graph(); }
  Scope& scope() { return scope_; }

  bool has(std::string_view name) const;       // given, and not None
  core::Value* tensor(std::string_view name);  // rejects complex ones
  core::Value* pair(std::string_view name);    // a complex tensor: reals with one more dim, of size 2
  std::vector<core::Value*> tensors(std::string_view name);           // rejects None
  std::vector<core::Value*> optional_tensors(std::string_view name);  // null entries for None
  bool is_tensor(std::string_view name) const;
  const TensorMeta& tensor_meta(std::string_view name) const;  // as recorded by the front end

  Dim dim(std::string_view name);
  std::vector<Dim> dims(std::string_view name);
  int64_t integer(std::string_view name);                     // constant
  std::vector<int64_t> integers(std::string_view name);       // constants; a single number is a list of one
  double number(std::string_view name);                       // int, float or bool
  std::optional<double> known_number(std::string_view name);  // nullopt if it depends on sizes or data
  std::vector<double> numbers(std::string_view name);
  bool is_floating_number(std::string_view name) const;
  // Operands of Python's operators, which have no names; nullopt if the value is not known.
  std::optional<Dim> size_at(size_t position);
  std::optional<std::vector<Dim>> sizes_at(size_t position);  // of a list
  std::optional<double> number_at(size_t position);
  core::Value* real_of_sizes_at(size_t position);  // f64 without dims; null if it is something else
  bool flag(std::string_view name);
  std::string text(std::string_view name);  // "" for None
  std::vector<std::string> texts(std::string_view name);
  std::optional<DType> dtype(std::string_view name);
  size_t axis(std::string_view name, size_t rank);  // negative ones count from the end
  std::vector<int64_t> axes(std::string_view name,
                            size_t rank);  // sorted; all of them for None or an empty list

  // The first result, as recorded by the front end.
  const TensorMeta& result_meta(size_t index = 0) const;
  size_t result_count() const { return node_.outputs.size(); }

  void give(core::Value* result) { give(0, result); }
  void give(size_t index, core::Value* result);
  void give(const Dim& result);
  void give_number(double result);
  void give(RealOfSizes result);

  [[noreturn]] void refuse(const std::string& reason) const;
  // Rejects conditions that torch ensures, but a file may violate.
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

// Rejects values that are not 64-bit numbers, naming the current node.
int64_t whole_number(const core::Graph& graph, double value);
core::Value* converted(core::Graph& graph, core::Value* value, DType dtype);  // itself if it has that dtype

}  // namespace ingot::core::aten
