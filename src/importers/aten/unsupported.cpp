// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/core.h>

#include "importers/aten/converters/complex.h"
#include "importers/aten/converters/converters.h"
#include "importers/aten/converters/reasons.h"
#include "importers/aten/import.h"
#include "importers/aten/importer.h"
#include "importers/aten/program/bound_symbols.h"
#include "importers/aten/program/node_error.h"
#include "importers/aten/schema/aliases.h"
#include "importers/aten/schema/schemas.h"

namespace ingot::core::aten {
namespace {

// `symbols`: of the outermost graph.
std::vector<Refusal> find_unsupported(const Graph& graph, const SymbolTable& symbols, BoundSymbols bound,
                                      bool draws);

// Why a value cannot be in an engine, "" if it can.
std::string refuse_value(const Value& value, const BoundSymbols& bound) {
  if (value.kind == ValueKind::kOther)
    return fmt::format("\"{}\" is of a kind or dtype that engines do not support", value.name);
  if (!unbound_symbol(value.tensor.shape, bound).empty())
    return fmt::format("the size of \"{}\" depends on data, or on a number that is not a size", value.name);
  if (value.integer && !unbound_symbol({&*value.integer, 1}, bound).empty())
    return fmt::format("\"{}\" depends on data, or on a number that is not a size", value.name);
  return {};
}

std::string refuse_argument(const Graph& graph, const Argument& argument, const BoundSymbols& bound) {
  if (const auto* id = std::get_if<ValueId>(&argument.value)) return refuse_value(graph.values[*id], bound);
  if (const auto* list = std::get_if<ArgumentList>(&argument.value)) {
    for (const Argument& item : *list) {
      if (std::string reason = refuse_argument(graph, item, bound); !reason.empty()) return reason;
    }
  }
  return {};
}

// Torch can only run a branch or loop whole.
std::string refuse_graphs(const Node& node, const SymbolTable& symbols, const BoundSymbols& bound) {
  for (const Graph* graph : graphs_of(node)) {
    const std::vector<Refusal> refusals = find_unsupported(*graph, symbols, bound, false);
    if (!refusals.empty())
      return fmt::format("in one of its graphs, {}: {}", refusals[0].target, refusals[0].reason);
  }
  return {};
}

std::string refuse(const Graph& graph, const Node& node, bool is_in_place, const SymbolTable& symbols,
                   const BoundSymbols& bound, bool draws) {
  const std::string target = is_in_place ? functional_target(node.target) : node.target;
  const bool is_complex = is_complex_call(graph, node),
             has_graphs = is_transparent(node) || is_control_flow(node);
  if (is_complex && !has_graphs && find_complex_converter(target) == nullptr) return "complex numbers";
  if (!is_complex && !has_graphs && find_converter(target) == nullptr)
    return reason_without_converter(node.target);
  if (!draws && draws_random_numbers(node.target)) return std::string(kTorchDraws);
  if (is_control_flow(node)) {
    if (std::string reason = refuse_graphs(node, symbols, bound); !reason.empty()) return reason;
  }
  for (const NamedArgument& argument : node.arguments) {
    if (std::string reason = refuse_argument(graph, argument.argument, bound); !reason.empty()) return reason;
  }
  for (const auto& output : node.outputs) {
    if (!output) continue;
    if (std::string reason = refuse_value(graph.values[*output], bound); !reason.empty()) return reason;
  }
  return {};
}

// The symbols of sizes that the node computes.
void add_own_symbols(const Graph& graph, const Node& node, const SymbolTable& symbols, BoundSymbols& bound) {
  const Converter* converter = find_converter(node.target);
  if (converter == nullptr || !converter->binds_sizes) return;
  for (const auto& output : node.outputs) {
    if (!output) continue;
    const Value& value = graph.values[*output];
    for (const Dim& dim : value.tensor.shape) {
      if (dim.is_symbol()) bound.insert(dim.symbol_name());
    }
    const bool is_number = value.integer && value.integer->is_symbol();
    if (is_number && symbols.contains(value.integer->symbol_name()))
      bound.insert(value.integer->symbol_name());
  }
}

std::vector<Refusal> find_unsupported(const Graph& graph, const SymbolTable& symbols, BoundSymbols bound,
                                      bool draws) {
  const Aliases aliases = find_aliases(graph);
  std::vector<std::string> reasons(graph.nodes.size());
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    BoundSymbols with_own = bound;
    add_own_symbols(graph, graph.nodes[i], symbols, with_own);
    reasons[i] = refuse(graph, graph.nodes[i], aliases.target[i].has_value(), symbols, with_own, draws);
    if (reasons[i].empty()) bound = std::move(with_own);
  }
  std::vector<Refusal> refusals;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (!reasons[i].empty())
      refusals.push_back({i, node.target, std::move(reasons[i]), source_text(node.source)});
  }
  return refusals;
}

}  // namespace

bool has_importer(std::string_view target) {
  const Converter* real = find_converter(target);
  const Converter* converter = real != nullptr ? real : find_complex_converter(target);
  return converter != nullptr && !converter->composed;
}

std::vector<Refusal> find_unsupported(const Graph& graph, bool draws) {
  return find_unsupported(graph, graph.symbols, bound_symbols(graph), draws);
}

}  // namespace ingot::core::aten
