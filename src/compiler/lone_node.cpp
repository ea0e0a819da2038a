// SPDX-License-Identifier: Apache-2.0
#include "compiler/lone_node.h"

#include <fmt/core.h>

#include "ir/rename_symbols.h"
#include "ir/text.h"

namespace ingot::core {
namespace {

Node* copy_node(const Node& node, LoneNode& lone) {
  std::map<const Value*, Value*> inputs;
  std::vector<Value*> operands;
  for (Value* operand : node.operands) {
    if (operand == nullptr) {
      operands.push_back(nullptr);
      continue;
    }
    const auto [entry, is_new] = inputs.try_emplace(operand, nullptr);
    if (is_new) {
      entry->second = lone.graph.add_input("x", operand->type);
      lone.around.values.push_back(operand);
    }
    operands.push_back(entry->second);
  }
  lone.around.values.insert(lone.around.values.end(), node.results.begin(), node.results.end());
  return lone.graph.add_copy(node, operands);
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
    lone.graph.symbols.emplace(own.symbol_name(), std::move(info));
  }
}

}  // namespace

std::string LoneNode::text() const { return to_string(graph, {.canonical = true}); }

size_t LoneNode::position(const Value* value) const {
  return value->producer == nullptr ? value->index : graph.inputs().size() + value->index;
}

LoneNode isolate(const Node& node, const SymbolTable& symbols) {
  LoneNode lone;
  Node* copy = copy_node(node, lone);
  lone.graph.outputs = copy->results;
  lone.node = copy;
  rename(lone, symbols);
  return lone;
}

}  // namespace ingot::core
