// SPDX-License-Identifier: Apache-2.0
#include "compiler/lone_node.h"

#include <fmt/core.h>

#include "ir/rename_symbols.h"
#include "ir/text.h"
#include "ops/model_source.h"
#include "ops/ops.h"

namespace ingot::core {
namespace {

// Backends may ask whether an operand is a weight or a state, but not which.
Value* add_operand(Graph& graph, const Value& operand) {
  const Node* producer = operand.producer;
  if (producer == nullptr || (producer->op != &ops::weight && producer->op != &ops::state))
    return graph.add_input("x", operand.type);
  Node* own = graph.add_copy(*producer, {});
  auto source = own->attributes<ops::ModelSource>();
  source.name.clear();
  source.source = source.init_output = -1;
  own->values = to_values(source);
  return own->results[0];
}

Node* copy_node(const Node& node, LoneNode& lone) {
  std::map<const Value*, Value*> inner = {{nullptr, nullptr}};
  std::vector<Value*> operands;
  const auto remember = [&](Value* outer, const Value* own) {
    lone.positions.emplace(own, lone.around.values.size());
    lone.around.values.push_back(outer);
  };
  for (Value* operand : node.operands) {
    const auto [entry, is_new] = inner.try_emplace(operand, nullptr);
    if (is_new) {
      entry->second = add_operand(lone.graph, *operand);
      remember(operand, entry->second);
    }
    operands.push_back(entry->second);
  }
  Node* copy = lone.graph.add_copy(node, std::move(operands));
  for (size_t i = 0; i < copy->results.size(); ++i) remember(node.results[i], copy->results[i]);
  return copy;
}

// Numbers the symbols in the order of their appearance.
void rename(LoneNode& lone, const SymbolTable& symbols) {
  std::map<std::string, Dim> names;
  for (const std::string& name : symbols_in_order(lone.graph, symbols)) {
    const std::string own = fmt::format("s{}", names.size());
    names.emplace(name, Dim::symbol(own));
    lone.around.symbols.emplace(own, Dim::symbol(name));
  }
  rename_symbols(lone.graph, names);
  for (const auto& [name, own] : names) {
    const auto known = symbols.find(name);
    if (known == symbols.end()) continue;
    SymbolInfo info = known->second;
    if (info.upper_bound) info.upper_bound = substitute(*info.upper_bound, names);
    info.by_rank.reset();  // a kernel takes its sizes, wherever they are from: programs share it
    lone.graph.symbols.emplace(own.symbol_name(), std::move(info));
  }
}

}  // namespace

std::string LoneNode::text() const { return to_string(graph, {.canonical = true}); }

LoneNode isolate(const Node& node, const SymbolTable& symbols) {
  LoneNode lone;
  Node* copy = copy_node(node, lone);
  lone.graph.outputs = copy->results;
  lone.node = copy;
  rename(lone, symbols);
  return lone;
}

}  // namespace ingot::core
