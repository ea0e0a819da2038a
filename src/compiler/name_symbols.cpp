// SPDX-License-Identifier: Apache-2.0
#include "compiler/name_symbols.h"

#include <fmt/core.h>

#include "ir/rename_symbols.h"

namespace ingot::core {
namespace {

bool is_numbered(std::string_view name) {
  const bool has_letter = name.size() > 1 && (name[0] == 's' || name[0] == 'u');
  return has_letter && name.find_first_not_of("0123456789", 1) == name.npos;
}

}  // namespace

Predicate renamed(Predicate condition, const std::map<std::string, Dim>& symbols) {
  condition.left = substitute(condition.left, symbols);
  condition.right = substitute(condition.right, symbols);
  for (Predicate& part : condition.parts) part = renamed(std::move(part), symbols);
  return condition;
}

void name_symbols(aten::Imported& model) {
  Graph& graph = model.graph;
  std::map<std::string, Dim> names;
  size_t count = 0;
  const auto add = [&](const std::string& name) {
    if (names.contains(name)) return;
    names.emplace(name, Dim::symbol(is_numbered(name) ? fmt::format("s{}", count++) : name));
  };
  for (const std::string& name : symbols_in_order(graph, graph.symbols)) add(name);
  for (const auto& [name, info] : graph.symbols) add(name);
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
