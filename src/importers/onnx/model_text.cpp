// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "importers/onnx/input_types.h"
#include "importers/onnx/load.h"
#include "importers/onnx/tensors.h"
#include "support/scanner.h"

namespace ingot::core::onnx {
namespace {

std::string dim_text(const DimDef& dim) {
  if (dim.value) return fmt::format("{}", *dim.value);
  return dim.parameter.empty() ? "?" : dim.parameter;
}

std::string type_text(const ValueDef& value) {
  if (value.kind != "tensor") return value.kind;
  std::vector<std::string> dims;
  for (const DimDef& dim : value.shape.value_or(std::vector<DimDef>{})) dims.push_back(dim_text(dim));
  return fmt::format("{}[{}]", data_type_name(value.element_type),
                     value.shape ? fmt::format("{}", fmt::join(dims, ",")) : "...");
}

// As AttributeProto.AttributeType counts them.
std::string attribute_text(const AttributeDef& attribute) {
  if (!attribute.parameter.empty()) return "attribute " + attribute.parameter;
  if (attribute.tensor != nullptr)
    return fmt::format("{}[{}]", data_type_name(attribute.tensor->data_type),
                       fmt::join(attribute.tensor->dims, ","));
  if (attribute.graph != nullptr) return fmt::format("graph of {} nodes", attribute.graph->nodes.size());
  switch (attribute.type) {
    case 1:
      return fmt::format("{}", attribute.number);
    case 2:
      return fmt::format("{}", attribute.integer);
    case 3:
      return quote(attribute.text);
    case 6:
      return fmt::format("[{}]", fmt::join(attribute.numbers, ", "));
    case 7:
      return fmt::format("[{}]", fmt::join(attribute.integers, ", "));
    case 8:
      return fmt::format("[{} texts]", attribute.texts.size());
    default:
      return "?";
  }
}

std::string node_text(const NodeDef& node) {
  std::vector<std::string> attributes;
  for (const AttributeDef& attribute : node.attributes)
    attributes.push_back(attribute.name + "=" + attribute_text(attribute));
  return fmt::format("  {} = {}{}({}){}{}\n", fmt::join(node.outputs, ", "),
                     node.domain.empty() ? "" : node.domain + ".", node.op, fmt::join(node.inputs, ", "),
                     attributes.empty() ? "" : fmt::format(" {{{}}}", fmt::join(attributes, ", ")),
                     node.name.empty() ? "" : "  -- " + node.name);
}

}  // namespace

std::string to_string(const LoadedModel& loaded) {
  const Model& model = loaded.model;
  std::string text =
      fmt::format("model {} by {}\n", quote(model.graph.name), model.producer.empty() ? "?" : model.producer);
  for (const auto& [domain, version] : model.opsets)
    text += fmt::format("  opset {}{}\n", domain.empty() ? "" : domain + " ", version);
  for (const ValueDef& input : model.graph.inputs)
    text += fmt::format("  input {}: {}\n", input.name, type_text(input));
  for (const TensorDef& tensor : model.graph.initializers)
    text += fmt::format("  initializer {}: {}[{}]\n", tensor.name, data_type_name(tensor.data_type),
                        fmt::join(tensor.dims, ","));
  for (const NodeDef& node : model.graph.nodes) text += node_text(node);
  for (const ValueDef& output : model.graph.outputs)
    text += fmt::format("  output {}: {}\n", output.name, type_text(output));
  for (const FunctionDef& function : model.functions) {
    text +=
        fmt::format("function {}.{}({})\n", function.domain, function.name, fmt::join(function.inputs, ", "));
    for (const NodeDef& node : function.nodes) text += node_text(node);
  }
  return text;
}

}  // namespace ingot::core::onnx
