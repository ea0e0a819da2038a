// SPDX-License-Identifier: Apache-2.0
#include "importers/pt2/signature.h"

#include <fmt/format.h>

#include <algorithm>

#include "importers/pt2/graph_reader.h"
#include "support/error.h"

namespace ingot::core::pt2 {
namespace {

[[noreturn]] void refuse_names(std::string message) { throw UserError("INGOT-U506", std::move(message)); }

JsonItems specs_of(Json graph_module, std::string_view specs, JsonItems arguments) {
  const JsonItems list = graph_module.at("signature").at(specs).items();
  if (list.size() != arguments.size())
    refuse_names(fmt::format("the signature has {} {}, the graph {}", list.size(), specs, arguments.size()));
  return list;
}

// The single value that an argument of the graph defines.
std::string defined_name(Json argument, const ReadContext& context) {
  const Definition definition = read_definition(argument, context);
  if (definition.names.size() != 1 || !definition.names[0])
    refuse_names("an input of the graph defines no value");
  return *definition.names[0];
}

aten::Input read_weight(Json argument, Json spec, aten::InputKind kind, std::string_view name,
                        Payloads& payloads, ValueScope& scope) {
  const std::string value_name = defined_name(argument, scope.context());
  if (value_name != spec.at("arg").at("name").text())
    refuse_names(fmt::format("the signature has the name '{}' where the graph has '{}'",
                             spec.at("arg").at("name").text(), value_name));
  aten::Input input{.value = scope.define(value_name), .kind = kind, .name = std::string(name)};
  OwnedView data = payloads.find(std::string(name), scope.context());
  const aten::Value& value = scope.graph().values[input.value];
  const bool same_shape = std::ranges::equal(value.tensor.shape, data.view.shape,
                                             [](const Dim& dim, int64_t size) { return dim == Dim(size); });
  if (value.kind != aten::ValueKind::kTensor || value.tensor.dtype != data.view.dtype || !same_shape)
    refuse_names(fmt::format("the values of '{}' do not have the type declared in the graph", name));
  input.data = std::move(data);
  return input;
}

bool is_literal(Json argument) {
  const std::string_view tag = argument.only_member().key;
  return tag == "as_int" || tag == "as_float" || tag == "as_bool" || tag == "as_string" || tag == "as_none";
}

aten::Input read_literal(Json argument, std::string_view name, ValueScope& scope) {
  if (!is_literal(argument))
    refuse_names(fmt::format("the constant input '{}' has no constant in the graph", name));
  return {.value = scope.define_other(name),
          .name = std::string(name),
          .literal = read_argument(argument, scope)};
}

aten::Input read_input(Json argument, Json spec, ProgramPayloads& payloads, ValueScope& scope) {
  const auto [tag, content] = spec.only_member();
  if (tag == "parameter")
    return read_weight(argument, content, aten::InputKind::kParameter, content.at("parameter_name").text(),
                       payloads.weights, scope);
  if (tag == "buffer") {
    Payloads& source = content.at("persistent").boolean() ? payloads.weights : payloads.constants;
    aten::Input input = read_weight(argument, content, aten::InputKind::kBuffer,
                                    content.at("buffer_name").text(), source, scope);
    input.is_saved = content.at("persistent").boolean();
    return input;
  }
  if (tag == "tensor_constant")
    return read_weight(argument, content, aten::InputKind::kConstant,
                       content.at("tensor_constant_name").text(), payloads.constants, scope);
  if (tag == "constant_input") return read_literal(argument, content.at("name").text(), scope);
  if (tag == "custom_obj" || tag == "token")
    throw UnsupportedError("INGOT-N506",
                           fmt::format("an input of the program is a {}",
                                       tag == "token" ? "token of side effects" : "custom object"));
  if (tag != "user_input") refuse_unknown(scope.context(), "input", tag);
  if (is_literal(argument))
    return read_literal(argument, fmt::format("input{}", scope.graph().inputs.size()), scope);
  const std::string name = defined_name(argument, scope.context());
  return {.value = scope.define(name), .name = name};
}

aten::Output read_output(Json argument, Json spec, ValueScope& scope) {
  const auto [tag, content] = spec.only_member();
  aten::Output output{.value = read_argument(argument, scope)};
  if (tag == "user_output") return output;
  if (tag == "buffer_mutation" || tag == "parameter_mutation") {
    output.kind = aten::OutputKind::kBufferMutation;
    output.target = content.at(tag == "buffer_mutation" ? "buffer_name" : "parameter_name").text();
  } else if (tag == "user_input_mutation") {
    output.kind = aten::OutputKind::kUserInputMutation;
    output.target = content.at("user_input_name").text();
  } else if (tag == "token") {
    throw UnsupportedError("INGOT-N506", "an output of the program is a token of side effects");
  } else if (tag == "loss_output" || tag.starts_with("gradient_")) {
    throw UnsupportedError("INGOT-N508", "the program computes a loss or gradients",
                           "export the model for inference");
  } else {
    refuse_unknown(scope.context(), "output", tag);
  }
  const auto& inputs = scope.graph().inputs;
  if (std::ranges::find(inputs, output.target, &aten::Input::name) == inputs.end())
    refuse_names(fmt::format("the program mutates '{}', which is not an input", output.target));
  return output;
}

}  // namespace

void read_inputs(Json graph_module, ProgramPayloads& payloads, ValueScope& scope) {
  const JsonItems arguments = graph_module.at("graph").at("inputs").items();
  const JsonItems specs = specs_of(graph_module, "input_specs", arguments);
  auto spec = specs.begin();
  for (const Json argument : arguments) {
    scope.graph().inputs.push_back(read_input(argument, *spec, payloads, scope));
    ++spec;
  }
}

void read_outputs(Json graph_module, ValueScope& scope) {
  const JsonItems arguments = graph_module.at("graph").at("outputs").items();
  const JsonItems specs = specs_of(graph_module, "output_specs", arguments);
  auto spec = specs.begin();
  for (const Json argument : arguments) {
    scope.graph().outputs.push_back(read_output(argument, *spec, scope));
    ++spec;
  }
}

}  // namespace ingot::core::pt2
