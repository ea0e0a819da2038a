// SPDX-License-Identifier: Apache-2.0
#include "importers/onnx/import.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "importers/onnx/converters/converters.h"
#include "importers/onnx/importer.h"
#include "importers/onnx/input_types.h"
#include "importers/onnx/tensors.h"
#include "ops/size_condition.h"
#include "support/error.h"

namespace ingot::core::onnx {
namespace {

void refuse_unknown_output(const ValueDef& output) {
  if (output.kind != "tensor")
    throw UnsupportedError("INGOT-N540", fmt::format("output '{}' is a {}", output.name, output.kind));
}

// The spec of a call whose arguments are as many tensors, in torch's form: names are bound by it.
std::string flat_call(size_t arguments) {
  constexpr std::string_view kLeaf = R"({"type": null, "context": null, "children_spec": []})";
  const std::vector<std::string_view> leaves(arguments, kLeaf);
  return fmt::format(R"([1, {{"type": "builtins.tuple", "context": "null", "children_spec": [)"
                     R"({{"type": "builtins.tuple", "context": "null", "children_spec": [{}]}}, )"
                     R"({{"type": "builtins.dict", "context": "[]", "children_spec": []}}]}}])",
                     fmt::join(leaves, ", "));
}

}  // namespace

bool has_importer(std::string_view name) { return find_converter(name) != nullptr; }

aten::Program describe(const LoadedModel& model) {
  aten::Program program;
  program.origin = fmt::format("ONNX, opset {}, by {}", opset_of(model.model), model.model.producer);
  aten::Graph& graph = program.graph;
  const auto add = [&](aten::Input input, const std::string& name, DType dtype, Shape shape) {
    input.value = static_cast<aten::ValueId>(graph.values.size());
    input.name = name;
    aten::Value value;
    value.name = name;
    value.tensor = {dtype, std::move(shape), {}};
    graph.values.push_back(std::move(value));
    graph.inputs.push_back(std::move(input));
  };
  for (const InputType& input : input_types(model, graph.symbols)) {
    program.argument_names.push_back(input.name);
    add({.value = 0}, input.name, input.type.dtype, input.type.shape);
  }
  for (const auto& [name, tensor] : model.values)
    add({.value = 0,
         .kind = aten::InputKind::kParameter,
         .name = {},
         .data = OwnedView{tensor.view(), tensor.data}},
        name, tensor.dtype, Shape(tensor.shape.begin(), tensor.shape.end()));
  program.input_tree = flat_call(program.argument_names.size());
  for (const ValueDef& output : model.model.graph.outputs) program.output_names.push_back(output.name);
  return program;
}

aten::Imported import_model(const LoadedModel& model, bool weights_are_constants) {
  ImportState state(model, weights_are_constants);
  Graph& graph = state.result.graph;
  GraphScope scope(state, model.model.opsets, graph);
  for (const InputType& input : input_types(model, graph.symbols)) {
    scope.give(input.name, graph.add_input(input.name, input.type));
    state.result.input_slots.emplace_back(TensorSlot{});
  }
  for (const auto& [name, tensor] : model.values) scope.add_initializer(name, tensor);
  scope.import_nodes(model.model.graph.nodes);
  for (const ValueDef& output : model.model.graph.outputs) {
    refuse_unknown_output(output);
    graph.outputs.push_back(scope.tensor(output.name));
    state.result.output_slots.emplace_back(TensorSlot{});
  }
  state.result.checks = ops::take_checks(graph);
  return std::move(state.result);
}

}  // namespace ingot::core::onnx
