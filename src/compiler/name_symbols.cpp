// SPDX-License-Identifier: Apache-2.0
#include "compiler/name_symbols.h"

#include "ir/rename_symbols.h"

namespace ingot::core {
namespace {

Predicate renamed(Predicate condition, const std::map<std::string, Dim>& symbols) {
  condition.left = substitute(condition.left, symbols);
  condition.right = substitute(condition.right, symbols);
  for (Predicate& part : condition.parts) part = renamed(std::move(part), symbols);
  return condition;
}

}  // namespace

void name_symbols(aten::Imported& model, const std::map<std::string, Dim>& names) {
  Graph& graph = model.graph;
  rename_symbols(graph, names);
  SymbolTable symbols;
  for (auto& [name, info] : graph.symbols) {
    if (info.upper_bound) info.upper_bound = substitute(*info.upper_bound, names);
    symbols.emplace(names.at(name).symbol_name(), std::move(info));
  }
  graph.symbols = std::move(symbols);
  for (SizeCheck& check : model.checks) check.condition = renamed(std::move(check.condition), names);
}

}  // namespace ingot::core
