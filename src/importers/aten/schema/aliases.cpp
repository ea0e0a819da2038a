// SPDX-License-Identifier: Apache-2.0
#include "importers/aten/schema/aliases.h"

#include <algorithm>
#include <span>

#include "importers/aten/program/mutated_input.h"
#include "importers/aten/schema/schemas.h"
#include "importers/aten/schema/shared_results.h"

namespace ingot::core::aten {
namespace {

const ValueId* argument_value(const Node& node, const std::string& name, size_t position) {
  const auto named = std::ranges::find(node.arguments, name, &NamedArgument::name);
  if (named != node.arguments.end()) return std::get_if<ValueId>(&named->argument.value);
  // Arguments without names are positional.
  if (position < node.arguments.size() && node.arguments[position].name.empty()) {
    return std::get_if<ValueId>(&node.arguments[position].argument.value);
  }
  return nullptr;
}

// Whether strides place the elements contiguously, in order; dims of size 1 are ignored.
bool is_dense(const TensorMeta& meta) {
  Dim expected = 1;
  for (size_t i = meta.strides.size(); i-- > 0;) {
    if (meta.shape[i] == Dim(1)) continue;
    if (meta.strides[i] != expected) return false;
    expected = expected * meta.shape[i];
  }
  return true;
}

bool same_places(const TensorMeta& a, const TensorMeta& b) {
  if (a.strides.empty() || b.strides.empty()) return is_dense(a) && is_dense(b);
  if (a.strides.size() != b.strides.size()) return false;
  for (size_t i = 0; i < a.shape.size(); ++i) {
    if (a.shape[i] != Dim(1) && a.strides[i] != b.strides[i]) return false;
  }
  return true;
}

// Whether a call that returns a view if possible, and otherwise a copy, returned a view. A copy is dense; a
// reshaped view is dense if and only if its base is, as it shows the same memory in the same order.
bool is_view_here(const Graph& graph, const Node& node, ValueId base, ValueId result) {
  const TensorMeta &from = graph.values[base].tensor, &to = graph.values[result].tensor;
  if (node.target.starts_with("aten.to.") || node.target == "aten.type_as.default")
    return from.dtype == to.dtype;
  if (node.target == "aten.contiguous.default") return same_places(from, to);
  if (node.target.starts_with("aten.reshape") || node.target.starts_with("aten.flatten"))
    return is_dense(from) || !is_dense(to);
  return true;
}

void add_view(ValueId view, ValueId base, size_t maker, Aliases& aliases) {
  aliases.base.emplace(view, base);
  aliases.known_root.emplace(view, aliases.root(base));
  aliases.made_by.emplace(view, maker);
}

void add_node(const Graph& graph, size_t index, Aliases& aliases) {
  const Node& node = graph.nodes[index];
  const auto schema = find_schema(node.target);
  if (!schema) return;
  for (size_t i = 0; i < schema->arguments.size(); ++i) {
    const SchemaType& type = schema->arguments[i].type;
    const ValueId* value = type.alias.empty() ? nullptr : argument_value(node, schema->arguments[i].name, i);
    if (value == nullptr) continue;
    if (type.is_written) {
      aliases.target[index] = *value;
      aliases.written.insert(aliases.root(*value));
    }
    for (const auto& output : node.outputs) {  // results with the same letter share memory
      const bool shares =
          !schema->returns.empty() && schema->returns[0].alias.substr(0, 1) == type.alias.substr(0, 1);
      if (!output || !shares || *output == *value) continue;
      if (!type.is_written && !is_view_here(graph, node, *value, *output)) continue;
      add_view(*output, *value, index, aliases);
    }
  }
  for (const auto& [result, operand] : shared_results(node)) add_view(result, operand, index, aliases);
}

// A model may have several names for one tensor (transformers' StaticCache: a buffer and a constant); if it
// writes to one of them, they must stay one tensor. The first represents all, buffers before constants.
void join_written_inputs(const Graph& graph, Aliases& aliases) {
  std::map<const std::byte*, std::vector<const Input*>> by_memory;
  for (const Input& input : graph.inputs) {
    if (input.data && input.data->view.data != nullptr) by_memory[input.data->view.data].push_back(&input);
  }
  for (auto& [memory, inputs] : by_memory) {
    const auto is_written = [&](const Input* input) { return aliases.written.contains(input->value); };
    if (inputs.size() < 2 || std::ranges::none_of(inputs, is_written)) continue;
    std::ranges::stable_partition(inputs,
                                  [](const Input* input) { return input->kind != InputKind::kConstant; });
    const TensorView& first = inputs[0]->data->view;
    for (const Input* input : std::span(inputs).subspan(1)) {
      if (input->data->view.shape == first.shape && input->data->view.strides == first.strides)
        aliases.base.emplace(input->value, inputs[0]->value);
    }
    aliases.written.insert(inputs[0]->value);
  }
}

}  // namespace

ValueId Aliases::root(ValueId value) const {
  if (const auto known = known_root.find(value); known != known_root.end()) value = known->second;
  for (auto found = base.find(value); found != base.end(); found = base.find(value)) value = found->second;
  return value;
}

Aliases find_aliases(const Graph& graph) {
  Aliases aliases;
  aliases.target.resize(graph.nodes.size());
  for (size_t i = 0; i < graph.nodes.size(); ++i) add_node(graph, i, aliases);
  for (const Output& output : graph.outputs) {
    if (const Input* input = mutated_input(graph, output)) aliases.written.insert(input->value);
  }
  join_written_inputs(graph, aliases);
  return aliases;
}

}  // namespace ingot::core::aten
