// SPDX-License-Identifier: Apache-2.0
// Terms that describe a piece of a graph, such as "add(x, multiply(y, 2))":
//   a word       any value; repeated words match the same value
//   a number     a value that equals this number everywhere; fractions are compared to six digits
//   op(x, y)     the result of a node; its attributes are free unless some are given: gelu(x)
//   {approximate=true} op(...)      with literal dots: any operands
//   word:op(x)   the same, with a name for the rule's functions
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace ingot::core::rewriting {

struct Term {
  enum class Kind { kAny, kNumber, kCall };
  Kind kind = Kind::kAny;
  std::string name;            // of the word, or of the named call
  double number = 0;           // kNumber
  const Op* op = nullptr;      // kCall
  std::vector<Term> operands;  // kCall
  bool any_operands = false;   // kCall
  AttributeValues values;      // kCall; empty: any
};
Term parse_term(std::string_view text);  // InternalError on bad text: terms are part of this program

// The bindings of a term's words.
class Match {
 public:
  Value* value(std::string_view name) const;
  Node& node(std::string_view name) const { return *value(name)->producer; }
  Node& root() const { return *root_; }
  bool is_used_once(std::string_view name) const;
  Value* result() const { return root_->results[0]; }
  DType dtype() const { return result()->type.dtype; }

 private:
  friend std::optional<Match> match(const Graph& graph, const Term& term, Node& root);
  bool fits(const Term& term, Value* value);
  bool fits_call(const Term& term, Value* value);
  bool fits_operands(const Term& term, const std::vector<Value*>& operands);
  bool bind(const std::string& name, Value* value);

  const Graph* graph_ = nullptr;
  Node* root_ = nullptr;
  std::vector<std::pair<std::string_view, Value*>> bindings_;
};
std::optional<Match> match(const Graph& graph, const Term& term, Node& root);

// Adds the nodes of a term; numbers get the dtype of the match's result.
Value* build(Graph& graph, const Term& term, const Match& match);

// The constant that a value has everywhere, if known.
std::optional<double> number_everywhere(const Value* value);
Value* add_number(Graph& graph, double number, DType dtype, Shape shape = {});

}  // namespace ingot::core::rewriting
