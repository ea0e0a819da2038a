// SPDX-License-Identifier: Apache-2.0
#include "exporters/onnx/export_graphs.h"

#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

#include "exporters/onnx/describe.h"
#include "exporters/onnx/unique_names.h"
#include "ops/model_source.h"
#include "ops/ops.h"

namespace ingot::core::exported {
namespace {

// The values of one graph by their names in ONNX. Graphs of control flow share the names of the graph around
// them; functions have their own.
struct GraphScope {
  UniqueNames& names;
  std::unordered_map<const Value*, std::string> values = {}, chosen = {};

  std::string name_of(const Value* value) const { return value == nullptr ? "" : values.at(value); }
  std::string add(const Value* value, const std::string& wanted) {
    const auto known = chosen.find(value);
    return values.emplace(value, known != chosen.end() ? known->second : names.unused(wanted)).first->second;
  }
};

std::string region_name(const Graph& region) {
  std::string operators;
  for (const auto& node : region.nodes())
    operators += (operators.empty() ? "" : ", ") + std::string(node->op->name);
  return "fused[" + operators + "]";
}

// As Netron reads them: it shows operands by these names.
std::string operand_names(const Node& node) {
  std::string text;
  for (size_t i = 0; i < node.operands.size(); ++i) {
    const auto& operands = node.op->operands;
    const Operand& operand = operands[std::min(i, operands.size() - 1)];
    const std::string number = operand.variadic ? std::to_string(i + 1 - operands.size()) : "";
    text += fmt::format("{}'{}{}'", text.empty() ? "" : ", ", operand.name, number);
  }
  return "[" + text + "]";
}

class GraphExport {
 public:
  explicit GraphExport(const GraphSource& source) : source_(source) {}

  OnnxModel run() {
    UniqueNames names;
    GraphScope scope{names};
    model_.doc = source_.doc;
    model_.metadata = source_.metadata;
    model_.graph = convert(source_.main, scope);
    model_.graph.name = "main";
    add_symbols(model_.graph.metadata, source_.main.symbols);
    for (size_t i = 0; i < model_.graph.outputs.size() && i < source_.outputs.size(); ++i)
      model_.graph.outputs[i].doc = "the result " + source_.outputs[i];
    if (!source_.init.nodes().empty()) convert_init();
    return std::move(model_);
  }

 private:
  // Its outputs get their names first: no other value may take them.
  void convert_init() {
    UniqueNames names;
    GraphScope scope{names};
    std::vector<std::string> outputs;
    for (const Value* output : source_.init.outputs) {
      outputs.push_back(names.unused(name_of_prepared(static_cast<int64_t>(outputs.size()))));
      scope.chosen.emplace(output, outputs.back());
    }
    add_init(model_, convert(source_.init, scope, &outputs));
  }

  // `outputs`: names for the graph's outputs; null: those of the values.
  OnnxGraph convert(const Graph& graph, GraphScope& scope,
                    const std::vector<std::string>* outputs = nullptr) {
    OnnxGraph result;
    result.name = graph.name;
    for (const Value* input : graph.inputs())
      result.inputs.push_back(value_of(scope.add(input, input->name), input->type));
    for (const auto& node : graph.nodes()) add(*node, scope, result);
    for (const Update& update : graph.updates) {
      result.nodes.push_back({.inputs = {scope.name_of(update.target), scope.name_of(update.value)},
                              .outputs = {},
                              .name = "update " + scope.name_of(update.target),
                              .op = "update"});
    }
    add_outputs(graph, scope, outputs, result);
    return result;
  }

  // An output of ONNX is the result of a node, and listed once: then it is no longer among the values.
  void add_outputs(const Graph& graph, GraphScope& scope, const std::vector<std::string>* names,
                   OnnxGraph& result) {
    for (size_t i = 0; i < graph.outputs.size(); ++i) {
      const Value* value = graph.outputs[i];
      std::string name = scope.name_of(value);
      const auto own = std::ranges::find(result.values, name, &OnnxValue::name);
      const bool is_other = names != nullptr && (*names)[i] != name;
      if (is_other || own == result.values.end()) {
        const std::string copy = is_other ? (*names)[i] : scope.names.unused(name);
        result.nodes.push_back({.inputs = {name}, .outputs = {copy}, .name = copy, .op = "output"});
        name = copy;
      } else {
        result.values.erase(own);
      }
      result.outputs.push_back(value_of(name, value->type));
    }
  }

  void add(const Node& node, GraphScope& scope, OnnxGraph& graph) {
    if (node.op == &ops::constant) return add_constant(node, scope, graph);
    if (node.op == &ops::weight) return add_weight(node, scope, graph);
    OnnxNode added{.inputs = {}, .outputs = {}, .name = node.name, .op = std::string(node.op->name)};
    for (const Value* operand : node.operands) added.inputs.push_back(scope.name_of(operand));
    while (!added.inputs.empty() && added.inputs.back().empty()) added.inputs.pop_back();
    for (const Value* value : node.results) {
      added.outputs.push_back(scope.add(value, value->name));
      graph.values.push_back(value_of(added.outputs.back(), value->type));
    }
    if (added.name.empty() && !added.outputs.empty()) added.name = added.outputs[0];
    added.doc = node.source.to_string();
    add_origin(node, added);
    const auto names = node.op->attributes.names();
    for (size_t i = 0; i < node.values.size(); ++i)
      added.attributes.push_back(attribute_of(names[i], node.values[i]));
    add_graphs(node, scope, added);
    graph.nodes.push_back(std::move(added));
  }

  static void add_origin(const Node& node, OnnxNode& added) {
    if (!node.op->operands.empty()) added.metadata.emplace_back("input_names", operand_names(node));
    if (!node.name.empty()) added.metadata.emplace_back("node", node.name);
    if (!node.source.module_path.empty()) added.metadata.emplace_back("module", node.source.module_path);
    if (!added.doc.empty()) added.metadata.emplace_back("source", added.doc);
  }

  void add_graphs(const Node& node, GraphScope& scope, OnnxNode& added) {
    if (node.graphs.empty()) return;
    if (node.op->traits.has(Trait::kFused)) return add_region(*node.graphs[0], added);
    constexpr const char* kBranches[] = {"then", "otherwise"};
    const bool repeats = node.graphs.size() == 1;
    for (size_t i = 0; i < node.graphs.size(); ++i) {
      GraphScope inner{scope.names};
      auto graph = std::make_shared<OnnxGraph>(convert(*node.graphs[i], inner));
      added.attributes.push_back({repeats ? "body" : kBranches[i], std::move(graph)});
    }
  }

  void add_region(const Graph& region, OnnxNode& added) {
    UniqueNames names;
    GraphScope scope{names};
    OnnxGraph graph = convert(region, scope);
    graph.name = functions_.unused(region_name(region));
    std::string members;
    added.metadata.clear();  // of its operands: the function names them
    added.doc.clear();
    for (const auto& node : region.nodes()) {
      if (!node->name.empty()) members += (members.empty() ? "" : ", ") + node->name;
      append_line(added.doc, node->source.to_string());
    }
    graph.doc = added.doc;
    added.op = graph.name;
    added.domain = kRegionDomain;
    if (!members.empty()) added.metadata.emplace_back("nodes", members);
    if (!added.doc.empty()) added.metadata.emplace_back("source", added.doc);
    model_.functions.push_back({kRegionDomain, std::move(graph)});
  }

  static void add_constant(const Node& node, GraphScope& scope, OnnxGraph& graph) {
    const Value* value = node.results[0];
    const Tensor& literal = *node.literal;
    const size_t known = literal.data == nullptr ? 0 : literal.bytes();
    graph.tensors.push_back(
        tensor_of(scope.add(value, value->name), value->type, {literal.data.get(), known}));
  }

  void add_weight(const Node& node, GraphScope& scope, OnnxGraph& graph) const {
    const auto source = node.attributes<ops::ModelSource>();
    const Value* value = node.results[0];
    const bool is_prepared = source.init_output >= 0;
    std::string wanted = source.name.empty() ? value->name : source.name;
    if (is_prepared) wanted = name_of_prepared(source.init_output);
    std::optional<Tensor> values;
    const auto bytes = storage_bytes(value->type).constant();
    if (source.source >= 0 && bytes && *bytes <= static_cast<int64_t>(kMostBytesOfValues))
      values = source_.weight(source.source);
    graph.tensors.push_back(tensor_of(scope.add(value, wanted), value->type,
                                      values ? std::span<const std::byte>{values->data.get(), values->bytes()}
                                             : std::span<const std::byte>{}));
    if (is_prepared) graph.tensors.back().doc += "; prepared by init";
  }

  const GraphSource& source_;
  OnnxModel model_;
  UniqueNames functions_;
};

}  // namespace

OnnxModel export_graphs(const GraphSource& source) { return GraphExport(source).run(); }

}  // namespace ingot::core::exported
