// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ir/verify.h"
#include "ops/ops.h"
#include "support/error.h"
#include "tests/random/check.h"

namespace ingot::core::random_graphs {
namespace {

// Changes that make a case smaller. Each takes the number of what it changes; false if there is no such.

Node* node_at(const Graph& graph, size_t index) {
  const auto nodes = graph.node_list();
  return index < nodes.size() ? nodes[nodes.size() - 1 - index] : nullptr;  // the last first
}

bool is_source(const Node& node) { return node.op->traits.has(Trait::kSource); }

void drop_dead(Case& test) { test.graph.erase_dead_nodes(); }

bool keep_one_output(Case& test, size_t index) {
  auto& outputs = test.graph.outputs;
  if (index >= outputs.size() || outputs.size() + test.graph.updates.size() == 1) return false;
  outputs = {outputs[index]};
  test.graph.updates.clear();
  return true;
}

bool drop_output(Case& test, size_t index) {
  auto& outputs = test.graph.outputs;
  if (index >= outputs.size() || outputs.size() + test.graph.updates.size() == 1) return false;
  outputs.erase(outputs.begin() + static_cast<ptrdiff_t>(index));
  return true;
}

bool drop_update(Case& test, size_t index) {
  auto& updates = test.graph.updates;
  if (index >= updates.size() || test.graph.outputs.size() + updates.size() == 1) return false;
  updates.erase(updates.begin() + static_cast<ptrdiff_t>(index));
  return true;
}

bool drop_first_run(Case& test, size_t index) {
  if (index > 1 || test.runs.size() < 2) return false;
  test.runs.erase(test.runs.begin() + static_cast<ptrdiff_t>(index));
  return true;
}

// A node's results become inputs.
bool cut_node(Case& test, size_t index) {
  Node* node = node_at(test.graph, index);
  if (node == nullptr) return false;
  if (is_source(*node)) return true;  // nothing to cut, go on
  const auto values = all_values(test);
  for (Value* result : node->results) {
    if (result->users.empty() && !test.graph.is_output(result)) continue;
    Value* input = test.graph.add_input("cut", result->type);
    for (size_t run = 0; run < test.runs.size(); ++run) test.runs[run].push_back(values[run].at(result));
    test.graph.replace_uses(result, input);
  }
  return true;
}

// A node is left out: its result is one of its operands.
bool bypass_node(Case& test, size_t index) {
  Node* node = node_at(test.graph, index);
  if (node == nullptr) return false;
  for (Value* operand : node->operands) {
    if (operand == nullptr || operand->type != node->results[0]->type) continue;
    test.graph.replace_uses(node->results[0], operand);
    return true;
  }
  return true;
}

// Inputs that nothing reads, unless a size is known by them alone.
bool drop_inputs(Case& test, size_t index) {
  if (index > 0) return false;
  if (!test.graph.symbols.empty()) return true;
  std::vector<size_t> kept;
  for (size_t i = 0; i < test.graph.inputs().size(); ++i) {
    const Value* input = test.graph.inputs()[i];
    if (!input->users.empty() || test.graph.is_output(input)) kept.push_back(i);
  }
  for (auto& inputs : test.runs) {
    std::vector<Tensor> fewer;
    for (const size_t i : kept) fewer.push_back(inputs[i]);
    inputs = std::move(fewer);
  }
  test.graph.remove_unused_inputs();
  return true;
}

using Change = bool (*)(Case& test, size_t index);
constexpr Change kChanges[] = {keep_one_output, drop_first_run, drop_output, drop_update,
                               cut_node,        bypass_node,    drop_inputs};

size_t size_of(const Case& test) {
  return 100 * test.graph.nodes().size() + 10 * test.graph.outputs.size() + 10 * test.graph.updates.size() +
         10 * test.runs.size() + test.graph.inputs().size();
}

bool fails(const Case& test, const Build& build, Host& host) {
  try {
    verify(test.graph, "shrinking");
  } catch (const Error&) {
    return false;
  }
  return check(test, {&build, 1}, host).found();
}

bool shrink_once(Case& test, const Build& build, Host& host) {
  bool smaller = false;
  for (const Change change : kChanges) {
    for (size_t index = 0;; ++index) {
      Case candidate = test.clone();
      if (!change(candidate, index)) break;
      drop_dead(candidate);
      if (size_of(candidate) >= size_of(test) || !fails(candidate, build, host)) continue;
      test = std::move(candidate);
      smaller = true;
      if (index > 0) --index;
    }
  }
  return smaller;
}

}  // namespace

Case shrink(const Case& test, const Build& build, Host& host) {
  Case smallest = test.clone();
  while (shrink_once(smallest, build, host)) {
  }
  return smallest;
}

}  // namespace ingot::core::random_graphs
