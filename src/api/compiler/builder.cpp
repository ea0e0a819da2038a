// SPDX-License-Identifier: Apache-2.0
// ingot_builder_*: filling an aten::Program.
#include "api/compiler/builder.h"

#include <fmt/core.h>

#include "api/runtime/guard.h"
#include "api/runtime/tensors.h"
#include "importers/aten/program/passed_numbers.h"
#include "support/error.h"
#include "types/symbol_name.h"

using namespace ingot::core;

namespace {

constexpr size_t kFirstValue = offsetof(ingot_value, strides) + sizeof(void*);
constexpr size_t kFirstInput = offsetof(ingot_input, literal) + sizeof(void*);
constexpr size_t kFirstNode = offsetof(ingot_node, module_path) + sizeof(void*);
constexpr size_t kOneArgument = SIZE_MAX;  // passed if the C API takes one argument without a length

std::vector<Dim> read_dims(const char* const* texts, int32_t rank) {
  std::vector<Dim> dims;
  for (int32_t i = 0; i < rank; ++i) {
    api::require(texts[i], "dim");
    dims.push_back(parse_dim(texts[i]));
  }
  return dims;
}

aten::Value read_value(const ingot_value& given) {
  aten::Value value;
  value.name = api::text_or_empty(given.name);
  value.kind = api::to_enum(given.kind, aten::ValueKind::kOther, "ingot_value_kind");
  if (given.rank < 0) api::refuse_call(fmt::format("value '{}' has {} dims", value.name, given.rank));
  if (given.rank > 0) api::require(given.dims, "dims");
  if (value.kind == aten::ValueKind::kTensor) {
    value.tensor.dtype = api::to_dtype(given.dtype);
    value.tensor.shape = read_dims(given.dims, given.rank);
    if (given.strides != nullptr) value.tensor.strides = read_dims(given.strides, given.rank);
  } else if (value.kind == aten::ValueKind::kSymInt && given.rank > 0) {
    value.integer = read_dims(given.dims, 1)[0];
  }
  return value;
}

// Values of weights must match the type declared in the graph.
void require_same_type(const aten::Value& value, const TensorView& data, const std::string& name) {
  const bool same_shape = std::ranges::equal(value.tensor.shape, data.shape,
                                             [](const Dim& dim, int64_t size) { return dim == Dim(size); });
  if (value.kind == aten::ValueKind::kTensor && value.tensor.dtype == data.dtype && same_shape) return;
  api::refuse_call(fmt::format("the values of '{}' do not have the type declared in the graph", name));
}

aten::Input read_input(ingot_builder& builder, const ingot_input& given, std::shared_ptr<const void> owner) {
  const aten::Graph& graph = builder.graph();
  aten::Input input;
  input.value = api::to_value_id(graph, given.value);
  input.kind = api::to_enum(given.kind, aten::InputKind::kConstant, "ingot_input_kind");
  input.name = api::text_or_empty(given.name);
  if (input.kind != aten::InputKind::kUser) {
    api::require(given.data, "data");
    input.data = {api::to_view(*given.data), std::move(owner)};
    require_same_type(graph.values[input.value], input.data->view, input.name);
    input.is_saved = given.is_unsaved == 0;
  } else if (given.literal != nullptr) {
    input.literal = api::ArgumentReader(builder, graph, given.literal, kOneArgument).read();
  }
  return input;
}

aten::Node read_node(ingot_builder& builder, const ingot_node& given) {
  const aten::Graph& graph = builder.graph();
  aten::Node node;
  node.target = api::text_or_empty(given.target);
  node.name = api::text_or_empty(given.name);
  api::ArgumentReader reader(builder, graph, given.arguments, given.argument_count);
  while (!reader.done()) {
    std::string name(reader.name());
    node.arguments.push_back({std::move(name), reader.read()});
  }
  if (given.output_count > 0) api::require(given.outputs, "outputs");
  for (size_t i = 0; i < given.output_count; ++i) {
    const int64_t id = given.outputs[i];
    node.outputs.push_back(id < 0 ? std::nullopt : std::optional(api::to_value_id(graph, id)));
  }
  node.returns_list = given.returns_list != 0;
  node.source = {.file = api::text_or_empty(given.file),
                 .line = given.line,
                 .function = api::text_or_empty(given.function),
                 .module_path = api::text_or_empty(given.module_path)};
  return node;
}

}  // namespace

extern "C" {

ingot_status* ingot_builder_create(const char* origin, ingot_builder** builder) {
  return api::guard([&] {
    api::require(builder, "builder");
    auto made = std::make_unique<ingot_builder>();
    made->program.origin = api::text_or_empty(origin);
    *builder = made.release();
  });
}

void ingot_builder_free(ingot_builder* builder) { delete builder; }

ingot_status* ingot_builder_guard(ingot_builder* builder, const char* condition) {
  return api::guard([&] {
    api::require(builder, "builder");
    api::require(condition, "condition");
    builder->program.guards.emplace_back(condition);
  });
}

ingot_status* ingot_builder_symbol(ingot_builder* builder, const char* name, int64_t min, int64_t max,
                                   int64_t typical) {
  return api::guard([&] {
    api::require(builder, "builder");
    api::require(name, "name");
    if (min > max) api::refuse_call(fmt::format("the range {}..{} of symbol '{}' is empty", min, max, name));
    SymbolInfo info{.range = {min, max}};
    if (typical >= 0) info.typical = typical;
    require_symbol_name(name);
    builder->program.graph.symbols.insert_or_assign(name, std::move(info));
  });
}

ingot_status* ingot_builder_value(ingot_builder* builder, const ingot_value* value, uint32_t* id) {
  return api::guard([&] {
    api::require(builder, "builder");
    api::require(id, "id");
    std::vector<aten::Value>& values = builder->graph().values;
    values.push_back(read_value(api::read_struct(value, kFirstValue, "ingot_value")));
    *id = static_cast<uint32_t>(values.size() - 1);
  });
}

ingot_status* ingot_builder_input(ingot_builder* builder, const ingot_input* input) {
  return api::guard([&] {
    const auto given = api::read_struct(input, kFirstInput, "ingot_input");
    // The input's memory is released even if the input is rejected.
    std::shared_ptr<const void> owner(given.owner, [release = given.release](void* memory) {
      if (release != nullptr) release(memory);
    });
    api::require(builder, "builder");
    builder->graph().inputs.push_back(read_input(*builder, given, std::move(owner)));
  });
}

ingot_status* ingot_builder_pass_numbers(ingot_builder* builder) {
  return api::guard([&] {
    api::require(builder, "builder");
    aten::pass_numbers(builder->program.graph);
  });
}

ingot_status* ingot_builder_other_name(ingot_builder* builder, const char* name, const char* tied_to) {
  return api::guard([&] {
    api::require(builder, "builder");
    api::require(name, "name");
    builder->program.other_names.push_back({name, api::text_or_empty(tied_to)});
  });
}

ingot_status* ingot_builder_node(ingot_builder* builder, const ingot_node* node) {
  return api::guard([&] {
    api::require(builder, "builder");
    builder->graph().nodes.push_back(read_node(*builder, api::read_struct(node, kFirstNode, "ingot_node")));
  });
}

ingot_status* ingot_builder_output(ingot_builder* builder, const ingot_argument* value, int32_t kind,
                                   const char* target) {
  return api::guard([&] {
    api::require(builder, "builder");
    api::require(value, "value");
    aten::Graph& graph = builder->graph();
    graph.outputs.push_back(
        {.value = api::ArgumentReader(*builder, graph, value, kOneArgument).read(),
         .kind = api::to_enum(kind, aten::OutputKind::kUserInputMutation, "ingot_output_kind"),
         .target = api::text_or_empty(target)});
  });
}

ingot_status* ingot_builder_begin_graph(ingot_builder* builder) {
  return api::guard([&] {
    api::require(builder, "builder");
    builder->open.push_back(std::make_shared<aten::Graph>());
  });
}

ingot_status* ingot_builder_end_graph(ingot_builder* builder, int64_t* id) {
  return api::guard([&] {
    api::require(builder, "builder");
    api::require(id, "id");
    if (builder->open.empty()) api::refuse_call("no nested graph is open");
    builder->finished.push_back(std::move(builder->open.back()));
    builder->open.pop_back();
    *id = static_cast<int64_t>(builder->finished.size()) - 1;
  });
}

ingot_status* ingot_builder_signature(ingot_builder* builder, const char* input_tree, const char* output_tree,
                                      size_t argument_count, const char* const* argument_names) {
  return api::guard([&] {
    api::require(builder, "builder");
    if (argument_count > 0) api::require(argument_names, "argument_names");
    builder->program.input_tree = api::text_or_empty(input_tree);
    builder->program.output_tree = api::text_or_empty(output_tree);
    builder->program.argument_names.clear();
    for (size_t i = 0; i < argument_count; ++i)
      builder->program.argument_names.push_back(api::text_or_empty(argument_names[i]));
  });
}

}  // extern "C"
