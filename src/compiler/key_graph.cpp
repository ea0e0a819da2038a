// SPDX-License-Identifier: Apache-2.0
#include "compiler/key_graph.h"

#include <algorithm>

#include <fmt/core.h>

#include "ir/parse_without_values.h"
#include "ops/model_source.h"
#include "ops/ops.h"
#include "support/error.h"

namespace ingot::core {
namespace {

[[noreturn]] void refuse_key(const std::string& cause) {
  throw UserError("INGOT-U205", "the graph in the engine's key cannot be read: " + cause,
                  "build the engine again with this version of Ingot, or export the model");
}

// The last part of the key (compiler/key.cpp). The lines before it quote what is not theirs.
std::string_view graph_text(std::string_view key) {
  const size_t start = key.find("\ngraph ");
  if (start == key.npos) refuse_key("there is none");
  return key.substr(start + 1);
}

Graph parse(const EngineData& engine) {
  try {
    return parse_without_values(graph_text(engine.key), &ops::find_op);
  } catch (const Error& error) {
    refuse_key(error.details().message);
  }
}

void name_results(Graph& graph, Node& node, size_t number) {
  if (node.op == &ops::weight || node.op == &ops::state) {
    auto source = node.attributes<ops::ModelSource>();
    const bool is_fixed = std::ranges::all_of(source.shape, &Dim::is_constant);
    if (node.op == &ops::weight && !is_fixed) refuse_key("a weight has no fixed size");
    source.name = fmt::format("{} {}", node.op->name, source.source);
    node.values = to_values(source);
  }
  for (Value* result : node.results) graph.rename(result, fmt::format("{}_{}", node.op->name, number));
  for (const auto& nested : node.graphs) {
    size_t inner = 0;
    for (const auto& each : nested->nodes()) name_results(*nested, *each, inner++);
  }
}

}  // namespace

Graph graph_of_key(const EngineData& engine) {
  Graph graph = parse(engine);
  const std::vector<Port>& inputs = engine.main.inputs;
  if (graph.inputs().size() != inputs.size()) refuse_key("it has other inputs than the engine");
  size_t number = 0;
  for (const auto& node : graph.nodes()) name_results(graph, *node, number++);
  for (size_t i = 0; i < inputs.size(); ++i) graph.rename(graph.inputs()[i], inputs[i].name);
  return graph;
}

}  // namespace ingot::core
