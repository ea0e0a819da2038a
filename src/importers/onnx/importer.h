// SPDX-License-Identifier: Apache-2.0
// The state of one import.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "importers/aten/imported.h"
#include "importers/onnx/call.h"
#include "importers/onnx/literals.h"
#include "importers/onnx/load.h"
#include "importers/onnx/tensors.h"

namespace ingot::core::onnx {

// What all graphs of a model share.
struct ImportState {
  ImportState(const LoadedModel& loaded, bool are_constants)
      : model(loaded), weights_are_constants(are_constants) {}

  const LoadedModel& model;
  const bool weights_are_constants;
  aten::Imported result;
  Literals literals;
  TensorReader values{std::nullopt};        // attributes are never in other files
  std::map<const Value*, DType> four_bits;  // what values of bytes are in the model
  size_t nodes = 0, depth = 0;
};

// One graph, or one call of a function: a namespace of values. Names that it lacks are those of `outer`,
// which is of the same graph of ours.
class GraphScope final : public Scope {
 public:
  GraphScope(ImportState& state, const std::map<std::string, int64_t>& opsets, Graph& graph,
             GraphScope* outer = nullptr)
      : state_(state), opsets_(opsets), graph_(graph), outer_(outer) {}

  // Adds the values of initializers; the nodes in order.
  void add_initializer(const std::string& name, const Tensor& value);
  void import_nodes(const std::vector<NodeDef>& nodes);

  Graph& graph() override { return graph_; }
  bool is_outermost() const override { return &graph_ == &state_.result.graph; }
  Value* tensor(const std::string& name) override;
  std::optional<Tensor> literal(const std::string& name) override;
  std::optional<Tensor> literal(Value* value) override { return state_.literals.find(value); }
  std::optional<Sizes> sizes(const std::string& name) override;
  DType element_type(const Value* value) override;
  Tensor read(const TensorDef& tensor) override { return state_.values.read(tensor); }
  void give(const std::string& name, Value* value) override;
  void give(const std::string& name, Sizes sizes) override;
  void run(const GraphDef& graph, const std::vector<std::string>& outputs) override;
  std::unique_ptr<Scope> inside(Graph& body) override {
    return std::make_unique<GraphScope>(state_, opsets_, body);
  }

 private:
  struct Slot {
    Value* value = nullptr;  // made when it is first needed, for sizes and initializers
    std::optional<Sizes> sizes;
    std::optional<Tensor> initializer;
  };

  void import_node(const NodeDef& node, size_t index);
  void convert(const NodeDef& node);
  void call_function(const FunctionDef& function, const NodeDef& node);
  Slot& slot(const std::string& name);
  Slot& new_slot(const std::string& name);
  Value* stored(const std::string& name, const Tensor& value);

  ImportState& state_;
  const std::map<std::string, int64_t>& opsets_;
  Graph& graph_;  // that gets the nodes
  GraphScope* outer_;
  std::map<std::string, Slot> slots_;
};

}  // namespace ingot::core::onnx
