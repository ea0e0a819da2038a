// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include "importers/aten/converters/converters.h"
#include "importers/aten/import.h"
#include "importers/aten/importer.h"
#include "importers/aten/program/bound_symbols.h"
#include "importers/aten/program/node_error.h"
#include "importers/aten/schema/aliases.h"

namespace ingot::core::aten {
namespace {

// Why a value cannot be in an engine, "" if it can.
std::string refuse_value(const Value& value, const BoundSymbols& bound) {
  if (value.kind == ValueKind::kOther)
    return fmt::format("\"{}\" is of a kind or dtype that engines do not support", value.name);
  if (value.kind == ValueKind::kTensor && is_complex(value.tensor.dtype)) return "complex numbers";
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

std::string refuse(const Graph& graph, const Node& node, bool is_in_place, const BoundSymbols& bound) {
  const std::string target = is_in_place ? functional_target(node.target) : node.target;
  if (find_converter(target) == nullptr && !is_transparent(node)) return "Ingot has no such operator";
  for (const NamedArgument& argument : node.arguments) {
    if (std::string reason = refuse_argument(graph, argument.argument, bound); !reason.empty()) return reason;
  }
  for (const auto& output : node.outputs) {
    if (!output) continue;
    if (std::string reason = refuse_value(graph.values[*output], bound); !reason.empty()) return reason;
  }
  return {};
}

}  // namespace

bool has_importer(std::string_view target) {
  const Converter* converter = find_converter(target);
  return converter != nullptr && !converter->composed;
}

std::vector<Refusal> find_unsupported(const Graph& graph) {
  const Aliases aliases = find_aliases(graph);
  const BoundSymbols bound = bound_symbols(graph);
  std::vector<Refusal> refusals;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    std::string reason = refuse(graph, node, aliases.target[i].has_value(), bound);
    if (!reason.empty()) refusals.push_back({i, node.target, std::move(reason), source_text(node.source)});
  }
  return refusals;
}

}  // namespace ingot::core::aten
