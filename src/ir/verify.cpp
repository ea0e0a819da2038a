// SPDX-License-Identifier: Apache-2.0
#include "ir/verify.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "ir/bound_symbol.h"
#include "ir/node_rules.h"
#include "support/error.h"

namespace ingot::core {
namespace {

class Verifier {
 public:
  // `unbound`: the symbols that no node has bound yet.
  Verifier(const Graph& graph, const SymbolTable& symbols, std::string_view stage,
           std::set<std::string, std::less<>> unbound)
      : graph_(graph), symbols_(symbols), stage_(stage), unbound_(std::move(unbound)) {}

  void run() {
    for (size_t i = 0; i < graph_.inputs().size(); ++i) {
      const Value* input = graph_.inputs()[i];
      require(input->producer == nullptr && input->index == i, "input %{} has the wrong index", input->name);
      require_none(storage_problem(input->type));
      define(input);
    }
    for (const auto& node : graph_.nodes()) {
      node_ = node.get();
      check_node(*node);
    }
    node_ = nullptr;
    for (const Value* output : graph_.outputs) {
      require(output != nullptr && defined_.contains(output), "an output is not a value of the graph");
    }
    for (size_t i = 0; i < graph_.updates.size(); ++i) {
      const auto [target, value] = graph_.updates[i];
      require(defined_.contains(target) && defined_.contains(value),
              "an update uses a value of another graph");
      require_none(update_problem(graph_, i));
    }
    for (const Value* value : defined_) check_users(*value);
  }

  void check_ports(OutputLayouts outputs) const { require_none(port_problem(graph_, outputs)); }

 private:
  template <typename... Arguments>
  void require(bool condition, fmt::format_string<Arguments...> message, Arguments&&... arguments) const {
    if (condition) return;
    throw InternalError(fmt::format("after {}, graph {}{}: {}", stage_, graph_.name, blamed(),
                                    fmt::format(message, std::forward<Arguments>(arguments)...)));
  }
  // The user's node being checked, and its line.
  std::string blamed() const {
    if (node_ == nullptr || node_->name.empty()) return "";
    const std::string line = node_->source.to_string();
    return fmt::format(", node {}{}", node_->name, line.empty() ? "" : fmt::format(" ({})", line));
  }
  void require_none(const std::string& problem) const { require(problem.empty(), "{}", problem); }

  void define(const Value* value) {
    require(defined_.insert(value).second, "%{} is defined twice", value->name);
    require(names_.insert(value->name).second, "two values have the name %{}", value->name);
    for (const Dim& dim : value->type.shape) check_symbols(dim, value->name);
  }

  void check_symbols(const Dim& dim, const std::string& value) const {
    for (const std::string& symbol : dim.symbols()) {
      require(symbols_.contains(symbol), "%{} has the unknown symbol {}", value, symbol);
      require(!unbound_.contains(symbol), "%{} has the symbol {}, which is bound later", value, symbol);
    }
  }

  void check_symbols(const AttributeValue& value, std::string_view op) const {
    const auto check = [&](const Dim& dim) {
      for (const std::string& symbol : dim.symbols()) {
        require(symbols_.contains(symbol), "an attribute of {} has the unknown symbol {}", op, symbol);
        require(!unbound_.contains(symbol), "an attribute of {} has the symbol {}, which is bound later", op,
                symbol);
      }
    };
    if (const auto* dim = std::get_if<Dim>(&value)) check(*dim);
    if (const auto* dims = std::get_if<std::vector<Dim>>(&value)) std::ranges::for_each(*dims, check);
  }

  void check_node(const Node& node) {
    for (const Value* operand : node.operands) {
      if (operand == nullptr) continue;
      require(defined_.contains(operand), "{} uses a value before its definition", node.op->name);
      uses_[operand].push_back(&node);
    }
    require_none(operand_problem(*node.op, node.operands));
    require_none(attribute_problem(*node.op, node.values));
    unbound_.erase(bound_symbol(node));
    for (const AttributeValue& value : node.values) check_symbols(value, node.op->name);
    std::vector<TensorType> types;
    for (const Value* result : node.results) types.push_back(result->type);
    require_none(nested_graph_problem(node, types));
    if (node.graphs.empty() && node.op->infer != nullptr) check_types(node);
    for (size_t i = 0; i < node.results.size(); ++i) {
      const Value* result = node.results[i];
      require(result->producer == &node && result->index == i, "%{} has the wrong producer or index",
              result->name);
      define(result);
    }
    require_none(storage_problem(node));
    for (const auto& graph : node.graphs) Verifier(*graph, symbols_, stage_, unbound_).run();
  }

  // Layouts are chosen, not inferred.
  void check_types(const Node& node) const {
    Node question;  // `infer` must see a node without results
    question.op = node.op;
    question.operands = node.operands;
    question.values = node.values;
    question.literal = node.literal;
    std::vector<TensorType> inferred;
    try {
      inferred = node.op->infer(question);
    } catch (const Error& error) {
      require(false, "the types of {} can no longer be inferred: {}", node.op->name,
              std::string_view(error.what()));
    }
    require(inferred.size() == node.results.size(), "{} has {} results, not {}", node.op->name,
            inferred.size(), node.results.size());
    for (size_t i = 0; i < inferred.size(); ++i) {
      const TensorType& stored = node.results[i]->type;
      if (stored.dtype == inferred[i].dtype && stored.shape == inferred[i].shape) continue;
      require(false, "%{} is {}, but stored as {}", node.results[i]->name, to_string(inferred[i]),
              to_string(stored));
    }
  }

  void check_users(const Value& value) const {
    const auto found = uses_.find(&value);
    std::vector<const Node*> used = found == uses_.end() ? std::vector<const Node*>() : found->second;
    std::vector<const Node*> listed(value.users.begin(), value.users.end());
    std::ranges::sort(used);
    std::ranges::sort(listed);
    require(listed == used, "the list of users of %{} is wrong", value.name);
  }

  const Graph& graph_;
  const SymbolTable& symbols_;
  std::string_view stage_;
  std::set<std::string, std::less<>> unbound_;
  const Node* node_ = nullptr;  // being checked
  std::unordered_set<const Value*> defined_;
  std::unordered_set<std::string> names_;
  std::unordered_map<const Value*, std::vector<const Node*>> uses_;  // once for each operand
};

}  // namespace

void verify(const Graph& graph, std::string_view stage, OutputLayouts outputs) {
  Verifier verifier(graph, graph.symbols, stage, symbols_bound_by_nodes(graph));
  verifier.run();
  verifier.check_ports(outputs);
}

}  // namespace ingot::core
