// SPDX-License-Identifier: Apache-2.0
// One ONNX node during import. Inputs and outputs by position, attributes by name with the defaults of the
// schema. Accessors throw INGOT-N541 or INGOT-U543 if a model does not have what they ask for.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "importers/onnx/building.h"
#include "importers/onnx/model.h"
#include "importers/onnx/sizes.h"

namespace ingot::core::onnx {

// The values that a node can name.
class Scope {
 public:
  virtual ~Scope() = default;
  virtual Graph& graph() = 0;
  virtual bool is_outermost() const = 0;  // whether that is the model's graph
  virtual Value* tensor(const std::string& name) = 0;
  virtual std::optional<Tensor> literal(const std::string& name) = 0;  // nullopt: not known in the build
  virtual std::optional<Tensor> literal(Value* value) = 0;             // of this graph, likewise
  virtual std::optional<Sizes> sizes(const std::string& name) = 0;     // likewise
  virtual DType element_type(const Value* value) = 0;  // the model's: elements of four bits are bytes here
  virtual Tensor read(const TensorDef& tensor) = 0;    // of an attribute
  virtual void give(const std::string& name, Value* value) = 0;
  virtual void give(const std::string& name, Sizes sizes) = 0;
  // Runs a nested graph here; its outputs get the names `outputs`.
  virtual void run(const GraphDef& graph, const std::vector<std::string>& outputs) = 0;
  // A scope whose nodes go into `body`. It knows no value of this one, and lives shorter.
  virtual std::unique_ptr<Scope> inside(Graph& body) = 0;
};

constexpr size_t kMostNested = 32;  // graphs, and calls of functions, within each other

// INGOT-U543: a node that breaks the rules of its operator.
[[noreturn]] void refuse_node(std::string problem);

class Call {
 public:
  Call(Scope& scope, const NodeDef& node, int64_t opset, const Op* op = nullptr)
      : scope_(scope), node_(node), opset_(opset), op_(op) {}

  const NodeDef& node() const { return node_; }
  int64_t opset() const { return opset_; }
  const Op& op() const { return *op_; }  // of the table's entry
  Graph& graph() { return scope_.graph(); }
  Scope& scope() { return scope_; }

  size_t inputs() const { return node_.inputs.size(); }
  size_t outputs() const { return node_.outputs.size(); }
  bool has(size_t input) const { return input < inputs() && !node_.inputs[input].empty(); }
  bool wants(size_t output) const { return output < outputs() && !node_.outputs[output].empty(); }
  Value* tensor(size_t input);
  Value* optional_tensor(size_t input);  // null if absent
  std::vector<Value*> tensors();         // all inputs
  size_t rank(size_t input) { return tensor(input)->type.rank(); }
  DType element_type(size_t input) { return scope_.element_type(tensor(input)); }

  // Values that the import must know.
  std::optional<Sizes> sizes(size_t input);
  std::vector<Dim> dims(size_t input);          // of at most one dim
  std::vector<int64_t> integers(size_t input);  // likewise, constants
  int64_t integer(size_t input);
  std::optional<Tensor> literal(size_t input);
  std::vector<double> numbers(size_t input);
  double number(size_t input);

  bool has_attribute(std::string_view name) const { return find(name) != nullptr; }
  int64_t attribute_integer(std::string_view name, int64_t otherwise) const;
  bool flag(std::string_view name, bool otherwise = false) const {
    return attribute_integer(name, otherwise ? 1 : 0) != 0;
  }
  double attribute_number(std::string_view name, double otherwise) const;
  std::string attribute_text(std::string_view name, const char* otherwise) const;
  std::vector<int64_t> attributes(std::string_view name) const;  // empty if absent
  std::vector<double> attribute_numbers(std::string_view name) const;
  std::vector<std::string> attribute_texts(std::string_view name) const;
  const TensorDef* attribute_tensor(std::string_view name) const;  // null if absent
  const GraphDef& attribute_graph(std::string_view name) const;

  // Axes as indices; negative ones count from the end. Duplicates are errors.
  size_t axis(int64_t given, size_t rank) const;
  std::vector<size_t> axes(const std::vector<int64_t>& given, size_t rank) const;
  // From the attribute of older versions, or from an input; nullopt if the node has neither.
  std::optional<std::vector<int64_t>> given_integers(std::string_view attribute, size_t input);

  void give(Value* result) { give(0, result); }
  void give(size_t output, Value* result);
  void give_sizes(Sizes sizes);

 private:
  const AttributeDef* find(std::string_view name) const;

  Scope& scope_;
  const NodeDef& node_;
  const int64_t opset_;
  const Op* op_;
};

}  // namespace ingot::core::onnx
