// SPDX-License-Identifier: Apache-2.0
#include "importers/pt2/graph_reader.h"

#include <fmt/format.h>

#include "importers/aten/program/aten_text.h"
#include "importers/aten/schema/schemas.h"
#include "importers/pt2/node_source.h"
#include "support/error.h"

namespace ingot::core::pt2 {
namespace {

[[noreturn]] void throw_with_node(const Error& error, const aten::Node& node) {
  ErrorDetails details = error.details();
  details.message = fmt::format("{}: {}", node.target, details.message);
  details.node = node.name;
  details.source_line = aten::to_string(node.source);
  if (error.kind() == ErrorKind::kUser) throw UserError(std::move(details));
  throw UnsupportedError(std::move(details));
}

void read_inputs(Json node_json, aten::Node& node, ValueScope& scope) {
  for (const Json input : node_json.at("inputs").items())
    node.arguments.push_back({std::string(input.at("name").text()), read_argument(input.at("arg"), scope)});
}

void read_outputs(Json node_json, aten::Node& node, ValueScope& scope) {
  const JsonItems outputs = node_json.at("outputs").items();
  for (const Json output : outputs) {
    const Definition definition = read_definition(output, scope.context());
    for (const auto& name : definition.names)
      node.outputs.push_back(name ? std::optional(scope.define(*name)) : std::nullopt);
    node.returns_list = definition.is_list && outputs.size() == 1;
  }
}

std::string read_name(Json node_json, size_t index) {
  const std::optional<Json> name = node_json.find("name");  // absent in older files
  return name ? std::string(name->text()) : fmt::format("node{}", index);
}

aten::Node read_node(Json node_json, ValueScope& scope) {
  aten::Node node;
  node.target = read_target(node_json.at("target"));
  node.name = read_name(node_json, scope.graph().nodes.size());
  if (const std::optional<Json> metadata = node_json.find("metadata")) node.source = read_source(*metadata);
  try {
    read_inputs(node_json, node, scope);
    aten::complete_arguments(node);
    read_outputs(node_json, node, scope);
  } catch (const Error& error) {
    const bool is_ours = error.kind() == ErrorKind::kUser || error.kind() == ErrorKind::kUnsupported;
    if (!is_ours || !error.details().node.empty()) throw;
    throw_with_node(error, node);
  }
  return node;
}

}  // namespace

void read_nodes(Json graph_json, ValueScope& scope) {
  const JsonItems nodes = graph_json.at("nodes").items();
  scope.graph().nodes.reserve(nodes.size());
  for (const Json node : nodes) scope.graph().nodes.push_back(read_node(node, scope));
}

aten::Graph read_graph(Json graph_json, ReadContext& context) {
  aten::Graph graph;
  ValueScope scope(graph_json, graph, context);
  for (const Json input : graph_json.at("inputs").items())
    for (const auto& name : read_definition(input, context).names) {
      if (!name) throw UserError("INGOT-U503", "an input of a nested graph is None");
      graph.inputs.push_back({.value = scope.define(*name), .name = *name});
    }
  read_nodes(graph_json, scope);
  for (const Json output : graph_json.at("outputs").items())
    graph.outputs.push_back({.value = read_argument(output, scope)});
  const std::optional<Json> single = graph_json.find("is_single_tensor_return");
  graph.single_tensor_return = single && single->boolean();
  return graph;
}

}  // namespace ingot::core::pt2
