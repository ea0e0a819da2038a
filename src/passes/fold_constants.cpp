// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "evaluate/evaluate.h"
#include "ir/elementwise.h"
#include "ir/symbolic.h"
#include "ops/generate.h"
#include "ops/ops.h"
#include "passes/passes.h"
#include "passes/replace_all_uses.h"
#include "support/error.h"

namespace ingot::core {
namespace {

constexpr int64_t kMostElements =
    1 << 14;                            // of an operand or result: larger ones are left to the init program
constexpr int64_t kMostWork = 1 << 22;  // elements of all operands times elements of the result

int64_t elements(const Value* value) {
  const auto count = element_count(value->type).constant();
  return count && value->type.layout.is_row_major() ? *count : INT64_MAX;
}

// A source whose value is stored in the graph.
bool is_known(const Value* value) {
  const Node* node = value->producer;
  if (node == nullptr || elements(value) > kMostElements) return false;
  return node->literal != nullptr || (node->op == &ops::full && !has_symbolic_attributes(*node));
}

bool is_foldable(const Node& node) {
  const Traits traits = node.op->traits;
  const bool repeats = !traits.has(Trait::kRandom) && !traits.has(Trait::kSideEffect) && node.graphs.empty();
  if (!repeats || traits.has(Trait::kSource) || node.operands.empty()) return false;
  if (has_symbolic_attributes(node)) return false;
  int64_t read = 0, written = 0;
  for (const Value* operand : node.operands) {
    if (operand == nullptr) continue;
    if (!is_known(operand)) return false;
    read += elements(operand);
  }
  for (const Value* result : node.results) {
    if (elements(result) > kMostElements) return false;
    written += elements(result);
  }
  return read * written <= kMostWork || computes_elements(node);
}

Tensor value_of(const Node& node) {
  return node.literal != nullptr ? *node.literal : evaluate_node(node, {}, {}).front();
}

bool is_one_number(const Tensor& tensor) {
  const int64_t count = tensor.elements();
  if (count == 0 || is_complex(tensor.dtype) || bit_width(tensor.dtype) < 8) return false;
  const size_t width = static_cast<size_t>(bit_width(tensor.dtype)) / 8;
  const std::byte* first = tensor.data.get();
  for (int64_t i = 1; i < count; ++i) {
    if (std::memcmp(first, first + static_cast<size_t>(i) * width, width) != 0) return false;
  }
  return true;
}

ops::Full number_of(const Tensor& tensor) {
  const std::vector<int64_t> first(tensor.shape.size(), 0);
  ops::Full full{
      .value = 0, .integer = 0, .dtype = tensor.dtype, .shape = {tensor.shape.begin(), tensor.shape.end()}};
  if (is_floating(tensor.dtype)) {
    full.value = read_double(tensor.view(), first);
  } else {
    full.integer = read_integer(tensor.view(), first);
  }
  return full;
}

Value* add_known(Graph& graph, const Tensor& tensor) {
  return is_one_number(tensor) ? graph.call(ops::full, {}, number_of(tensor)) : graph.add_constant(tensor);
}

// Null if evaluation fails, for example for an index out of range: running the model will report it.
std::vector<Tensor> evaluated(const Node& node) {
  std::vector<Tensor> known;
  std::vector<const Tensor*> operands;
  known.reserve(node.operands.size());
  try {
    for (const Value* operand : node.operands) {
      if (operand != nullptr) known.push_back(value_of(*operand->producer));
      operands.push_back(operand != nullptr ? &known.back() : nullptr);
    }
    return evaluate_node(node, operands, {});
  } catch (const UserError&) {
    return {};
  } catch (const UnsupportedError&) {
    return {};
  }
}

// The value of each operand, if every operand has the same value everywhere; shapes may be symbolic.
std::vector<Tensor> operand_numbers(const Node& node) {
  std::vector<Tensor> numbers;
  for (const Value* operand : node.operands) {
    if (operand == nullptr || operand->producer == nullptr || operand->producer->op != &ops::full) return {};
    auto full = operand->producer->attributes<ops::Full>();
    if (!full.integer.is_constant()) return {};
    full.shape.clear();
    Graph graph;
    numbers.push_back(value_of(*graph.add(ops::full, {}, full)));
  }
  return numbers;
}

// An elementwise node of constants is a constant: evaluated once, whatever the shape.
void fold_number(Graph& graph, Node* node, Rewrites& rewrites) {
  const bool is_elementwise = node->op->traits.has(Trait::kElementwise) && node->results.size() == 1;
  if (!is_elementwise || has_symbolic_attributes(*node)) return;
  const std::vector<Tensor> numbers = operand_numbers(*node);
  if (numbers.empty()) return;
  Graph scalar;
  std::vector<Value*> operands;
  std::vector<const Tensor*> values;
  for (const Tensor& number : numbers) {
    operands.push_back(scalar.add_input("x", {number.dtype, {}, {}}));
    values.push_back(&number);
  }
  try {
    const Node* map = scalar.add(*node->op, operands, node->values);
    const Tensor result = evaluate_node(*map, values, {}).front();
    auto full = number_of(result);
    full.shape = node->results[0]->type.shape;
    if (!rewrites.allow(*node)) return;
    Graph::InsertBefore scope(graph, node);
    replace_all_uses(graph, node->results[0], graph.call(ops::full, {}, full));
  } catch (const UserError&) {  // operators that count dims are not functions of scalars
  }
}

void replace(Graph& graph, Node* node, const std::vector<Tensor>& results, Rewrites& rewrites) {
  if (results.empty() || !rewrites.allow(*node)) return;
  Graph::InsertBefore scope(graph, node);
  for (size_t i = 0; i < results.size(); ++i) {
    replace_all_uses(graph, node->results[i], add_known(graph, results[i]));
  }
}

}  // namespace

Graph fold_constants(Graph graph, Rewrites& rewrites) {
  for (Node* node : graph.node_list()) {
    if (node->literal != nullptr && node->results[0]->type.layout.is_row_major() &&
        is_one_number(*node->literal)) {
      replace(graph, node, {*node->literal}, rewrites);
    } else if (is_foldable(*node)) {
      replace(graph, node, evaluated(*node), rewrites);
    } else {
      fold_number(graph, node, rewrites);
    }
  }
  graph.erase_dead_nodes();
  return graph;
}

}  // namespace ingot::core
