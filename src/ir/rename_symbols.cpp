// SPDX-License-Identifier: Apache-2.0
#include "ir/rename_symbols.h"

#include <functional>
#include <unordered_set>

namespace ingot::core {
namespace {

using OnDim = std::function<void(Dim&)>;

void visit(AttributeValue& value, const OnDim& on_dim) {
  if (auto* dim = std::get_if<Dim>(&value)) on_dim(*dim);
  if (auto* dims = std::get_if<std::vector<Dim>>(&value)) {
    for (Dim& dim : *dims) on_dim(dim);
  }
}

// Every dim of the graph, in an order that its structure alone decides.
void visit(const Graph& graph, const OnDim& on_dim) {
  const auto visit_type = [&](TensorType& type) {
    for (Dim& dim : type.shape) on_dim(dim);
  };
  for (Value* input : graph.inputs()) visit_type(input->type);
  for (const auto& node : graph.nodes()) {
    for (AttributeValue& value : node->values) visit(value, on_dim);
    for (const auto& nested : node->graphs) visit(*nested, on_dim);
    for (Value* result : node->results) visit_type(result->type);
  }
}

class SymbolOrder {
 public:
  void add(const Dim& dim) {
    if (dim.is_symbol() && seen_.insert(dim.symbol_name()).second) names.push_back(dim.symbol_name());
    for (const Dim& operand : dim.operands()) add(operand);
  }

  std::vector<std::string> names;

 private:
  std::unordered_set<std::string> seen_;
};

}  // namespace

std::vector<std::string> symbols_in_order(const Graph& graph, const SymbolTable& symbols) {
  SymbolOrder order;
  visit(graph, [&](Dim& dim) {
    if (dim.is_symbol()) order.add(dim);
  });
  // The names of its symbols decide the order of a sum's terms: such dims come last.
  visit(graph, [&](Dim& dim) {
    if (!dim.is_constant()) order.add(dim);
  });
  for (size_t i = 0; i < order.names.size(); ++i) {
    const auto info = symbols.find(order.names[i]);
    if (info != symbols.end() && info->second.upper_bound) order.add(*info->second.upper_bound);
  }
  return std::move(order.names);
}

void rename_symbols(Graph& graph, const std::map<std::string, Dim>& names) {
  visit(graph, [&](Dim& dim) {
    if (!dim.is_constant()) dim = substitute(dim, names);
  });
}

}  // namespace ingot::core
