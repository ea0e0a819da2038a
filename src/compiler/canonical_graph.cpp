// SPDX-License-Identifier: Apache-2.0
#include "compiler/canonical_graph.h"

#include <fmt/core.h>

#include <unordered_map>
#include <unordered_set>

#include "ir/rename_symbols.h"
#include "ops/model_source.h"
#include "ops/ops.h"

namespace ingot::core {
namespace {

// Nodes after their operands, in the order in which the outputs, updates and side effects need them.
class Schedule {
 public:
  explicit Schedule(const Graph& graph) {
    for (const Value* output : graph.outputs) visit(output);
    for (const Update& update : graph.updates) {
      visit(update.target);
      visit(update.value);
    }
    for (const auto& node : graph.nodes())
      visit(node.get());  // what is left has side effects: in its own order
  }

  std::vector<const Node*> order;

 private:
  struct Frame {
    const Node* node;
    size_t next = 0;  // operand to look at
  };

  void visit(const Value* value) {
    if (value != nullptr && value->producer != nullptr) visit(value->producer);
  }

  // Without recursion: chains of operations are long.
  void visit(const Node* root) {
    if (!seen_.insert(root).second) return;
    std::vector<Frame> stack = {{root}};
    while (!stack.empty()) {
      Frame& frame = stack.back();
      if (frame.next == frame.node->operands.size()) {
        order.push_back(frame.node);
        stack.pop_back();
        continue;
      }
      const Value* operand = frame.node->operands[frame.next++];
      const Node* producer = operand == nullptr ? nullptr : operand->producer;
      if (producer != nullptr && seen_.insert(producer).second) stack.push_back({producer});
    }
  }

  std::unordered_set<const Node*> seen_;
};

// What a weight or state is called, and where it stands in the model, does not matter: only which nodes share
// it.
class SourceNumbers {
 public:
  void renumber(Node& node) {
    for (const auto& nested : node.graphs) {
      for (const auto& inner : nested->nodes()) renumber(*inner);
    }
    if (node.op != &ops::weight && node.op != &ops::state) return;
    auto source = node.attributes<ops::ModelSource>();
    const auto known = numbers_.try_emplace({node.op, source.source}, static_cast<int64_t>(numbers_.size()));
    if (known.second) in_order.emplace_back(node.op, source.source);
    source.name.clear();
    source.source = known.first->second;
    node.values = to_values(source);
  }

  std::vector<std::pair<const Op*, int64_t>> in_order;

 private:
  std::map<std::pair<const Op*, int64_t>, int64_t> numbers_;
};

void rename(CanonicalGraph& result, const SymbolTable& symbols) {
  for (const std::string& name : symbols_in_order(result.graph, symbols))
    result.symbols.emplace(name, Dim::symbol(fmt::format("s{}", result.symbols.size())));
  for (const auto& [name, info] : symbols)  // those that nothing names, which a caller still has to give
    result.symbols.emplace(name, Dim::symbol(fmt::format("s{}", result.symbols.size())));
  rename_symbols(result.graph, result.symbols);
  for (const auto& [name, info] : symbols) {
    SymbolInfo renamed = info;
    if (info.upper_bound) renamed.upper_bound = substitute(*info.upper_bound, result.symbols);
    result.graph.symbols.emplace(result.symbols.at(name).symbol_name(), std::move(renamed));
  }
}

}  // namespace

CanonicalGraph canonicalize(const Graph& graph) {
  CanonicalGraph result;
  std::unordered_map<const Value*, Value*> copies = {{nullptr, nullptr}};
  for (const Value* input : graph.inputs()) copies.emplace(input, result.graph.add_input("x", input->type));
  SourceNumbers sources;
  result.order = Schedule(graph).order;
  for (const Node* node : result.order) {
    std::vector<Value*> operands;
    for (const Value* operand : node->operands) operands.push_back(copies.at(operand));
    Node* copy = result.graph.add_copy(*node, std::move(operands));
    sources.renumber(*copy);
    for (size_t i = 0; i < copy->results.size(); ++i) copies.emplace(node->results[i], copy->results[i]);
  }
  for (const Value* output : graph.outputs) result.graph.outputs.push_back(copies.at(output));
  for (const Update& update : graph.updates)
    result.graph.updates.push_back({copies.at(update.target), copies.at(update.value)});
  rename(result, graph.symbols);
  result.sources = std::move(sources.in_order);
  return result;
}

}  // namespace ingot::core
