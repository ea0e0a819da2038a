// SPDX-License-Identifier: Apache-2.0
// Random graphs out of the operator records.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "tests/random/case.h"
#include "tests/random/fill.h"

namespace ingot::core::random_graphs {

// A graph of 2 to 12 nodes and some more, with the values of two runs. Equal seeds make equal cases.
Case make_case(uint64_t seed);

// What is being made. Rules (rules.h) add one or a few nodes each, out of values that are there and new
// sources; they do nothing where the operator refuses.
class Maker {
 public:
  explicit Maker(uint64_t seed);

  Random& random() { return random_; }
  bool chance(double probability) { return random_graphs::chance(random_, probability); }
  int64_t number(int64_t low, int64_t high) { return random_graphs::number(random_, low, high); }
  Graph& graph() { return graph_; }

  // An existing value, rather a late one; of rank `rank` at least.
  Value* any(size_t rank = 0);
  // The value in that dtype, by a conversion if need be.
  Value* as(Value* value, DType dtype);
  // Something of that type: an existing value, or a new input, weight, constant or state.
  Value* partner(const TensorType& type);
  Value* source(const TensorType& type, const Fill& fill);
  // A source whose storage is permuted against its shape: the transposition of another one.
  Value* transposed_source(const TensorType& type);
  // A symbol that a node binds to an input, from 0 to `last`.
  Dim found_position(int64_t last);
  Fill fill_for(DType dtype);
  Shape random_shape(size_t rank);
  Dim random_dim();
  DType random_dtype();
  // The largest value that the dim takes, and the smallest.
  int64_t most(const Dim& dim) const;
  int64_t least(const Dim& dim) const;

  // Null where the operator refuses, or a result may be empty or large.
  Node* add(const Op& op, std::vector<Value*> operands, AttributeValues values = {});
  template <typename Struct>
  Node* add(const Op& op, std::vector<Value*> operands, const Struct& attributes) {
    return add(op, std::move(operands), to_values(attributes));
  }

  Case finish();

 private:
  Value* state(const TensorType& type, const Fill& fill);
  void take_parts();
  void set_updates();
  void set_outputs();
  SymbolValues random_sizes();

  Random random_;
  Graph graph_{"random"};
  std::vector<Dim> palette_;
  std::vector<Value*> values_;
  std::map<const Value*, Fill> fills_;
  std::vector<Value*> states_;
  bool special_ = false;
  int sources_ = 0;
};

}  // namespace ingot::core::random_graphs
