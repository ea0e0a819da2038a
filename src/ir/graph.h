// SPDX-License-Identifier: Apache-2.0
// A graph owns its nodes and values; Node* and Value* are borrowed handles, valid while the graph lives and
// the node is not erased. Nodes are in execution order. SSA: one producer per value; mutation appears only as
// `updates`.
#pragma once

#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/op.h"
#include "types/tensor.h"
#include "types/tensor_type.h"

namespace ingot::core {

// A position in the user's model, printed as "-- file.py:214 in forward".
struct SourceLine {
  std::string file;
  int line = 0;
  std::string function;
  std::string module_path;
  std::string to_string() const;  // "" if unknown
};

// Which backend of a build runs a node: that of its device, or the one that compiles for the host.
enum class Side : uint8_t { kAny, kDevice, kHost };

struct Value {
  std::string name;  // unique in its graph, without '%'; may be any text
  TensorType type;
  Node* producer = nullptr;  // null: an input of the graph
  size_t index = 0;          // which result of the producer, or which input
  std::vector<Node*> users;  // one entry per use
  std::string dtype_and_shape() const { return to_string(type); }
};

struct Node {
  const Op* op = nullptr;
  std::vector<Value*> operands;  // one entry per operand of the record; null for an absent optional one
  std::vector<Value*> results;
  AttributeValues values;                      // in the order of the op's fields
  std::shared_ptr<const Tensor> literal;       // value of a `constant` node
  std::vector<std::unique_ptr<Graph>> graphs;  // fused region, branches, loop body
  SourceLine source;
  std::string name;  // of the user's node, for messages and reports
  Side side = Side::kAny;

  template <typename Struct>
  Struct attributes() const {
    return from_values<Struct>(values);
  }
  const TensorType& operand_type(size_t index) const { return operands[index]->type; }
  bool has_operand(size_t index) const { return index < operands.size() && operands[index] != nullptr; }
};

// An assignment to state at the end of a run: `target` is the result of a `state` node (or an input that the
// caller lets us mutate), `value` its new content.
struct Update {
  Value* target;
  Value* value;
};

struct GraphIndex;  // graph_index.h

class Graph {
 public:
  explicit Graph(std::string name = "main");
  ~Graph();
  Graph(Graph&&) noexcept;
  Graph& operator=(Graph&&) noexcept;
  Graph clone() const;

  std::string name;
  SymbolTable symbols;  // of the shapes in this graph; nested graphs use their parent's
  std::vector<Value*> outputs;
  std::vector<Update> updates;

  const std::vector<Value*>& inputs() const { return inputs_; }
  const std::list<std::unique_ptr<Node>>& nodes() const { return nodes_; }
  uint64_t revision() const { return revision_; }  // grows with each change

  Value* add_input(std::string name, TensorType type) {
    return insert_input(inputs_.size(), std::move(name), std::move(type));
  }
  Value* insert_input(size_t position, std::string name, TensorType type);

  // Appends (or inserts before the insertion point) a node: checks operands against the record, infers result
  // types. Errors carry `source` and the node's name.
  Node* add(const Op& op, std::vector<Value*> operands, AttributeValues values = {});
  template <typename Struct>
  Node* add(const Op& op, std::vector<Value*> operands, const Struct& attributes) {
    return add(op, std::move(operands), to_values(attributes));
  }
  Value* call(const Op& op, std::vector<Value*> operands, AttributeValues values = {}) {
    return add(op, std::move(operands), std::move(values))->results[0];
  }
  template <typename Struct>
  Value* call(const Op& op, std::vector<Value*> operands, const Struct& attributes) {
    return add(op, std::move(operands), attributes)->results[0];
  }
  Value* add_constant(Tensor tensor);
  // A node with explicit result types instead of inferred ones: fused regions and control flow.
  Node* add_with_graphs(const Op& op, std::vector<Value*> operands, AttributeValues values,
                        std::vector<Graph> graphs, std::vector<TensorType> results);
  // A copy of a node (maybe of another graph) with other operands: keeps its attributes, literal, graphs,
  // stored result types, source line, name and side.
  Node* add_copy(const Node& node, std::vector<Value*> operands);

  // New nodes go before `node` and inherit its source line, name and side, until the scope ends.
  class InsertBefore {
   public:
    InsertBefore(Graph& graph, Node* node);
    ~InsertBefore();

    InsertBefore(const InsertBefore&) = delete;
    InsertBefore& operator=(const InsertBefore&) = delete;

   private:
    Graph& graph_;
    Node* previous_;
    SourceLine previous_source_;
    std::string previous_name_;
    Side previous_side_;
  };

  void set_operand(Node* node, size_t index, Value* value);
  void replace_uses(Value* from, Value* to);  // operands, outputs and updates (targets too)
  void erase(Node* node);                     // no result may have uses
  void erase_dead_nodes();                    // nodes that reach no output, update or side effect
  void remove_unused_inputs();
  void rename(Value* value, std::string name);  // made unique with a suffix if taken
  bool is_output(const Value* value) const;     // an output, or the new value of an update
  std::vector<Node*> node_list() const;         // a snapshot that survives edits

  SourceLine current_source;  // given to nodes that are added
  std::string current_name;
  Side current_side = Side::kAny;

 private:
  // With the current source line, name and side; not yet checked, and in no graph.
  std::unique_ptr<Node> start_node(const Op& op, std::vector<Value*> operands, AttributeValues values) const;
  Node* insert(std::unique_ptr<Node> node, std::vector<TensorType> types);
  std::string unique_name(const std::string& wanted);

  std::vector<Value*> inputs_;
  std::vector<std::unique_ptr<Value>> input_values_;
  std::list<std::unique_ptr<Node>> nodes_;
  std::unique_ptr<GraphIndex> index_;  // names taken, node positions, result storage
  Node* insertion_point_ = nullptr;
  uint64_t revision_ = 0;
};

}  // namespace ingot::core
