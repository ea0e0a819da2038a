// SPDX-License-Identifier: Apache-2.0
#include "importers/aten/importer.h"

#include <fmt/core.h>

#include <algorithm>
#include <span>

#include "importers/aten/converters/complex.h"
#include "importers/aten/converters/converters.h"
#include "importers/aten/converters/reasons.h"
#include "importers/aten/one_dtype.h"
#include "importers/aten/program/node_error.h"
#include "importers/aten/recorded.h"
#include "importers/aten/schema/schemas.h"
#include "importers/aten/schema/values_needed.h"
#include "importers/aten/stored_constant.h"
#include "ops/ops.h"
#include "ops/reshape.h"
#include "ops/size_condition.h"
#include "ops/view.h"
#include "support/error.h"

namespace ingot::core::aten {
namespace {

SourceLine source_line(const Source& source) {
  return {.file = source.file,
          .line = source.line,
          .function = source.function,
          .module_path = source.module_path};
}

// Names arguments as in the functional variant: dropout_ has "self" where dropout has "input".
void take_names_of_twin(Node& node) {
  const std::optional<Schema> twin = find_schema(node.target);
  if (!twin || twin->arguments.size() != node.arguments.size()) return;
  for (size_t i = 0; i < node.arguments.size(); ++i) {
    std::string& name = node.arguments[i].name;
    if (std::ranges::find(twin->arguments, name, &SchemaArgument::name) == twin->arguments.end())
      name = twin->arguments[i].name;
  }
}

// Limits against malicious files: view nesting depth, and how many views are recomputed.
constexpr size_t kDeepest = 1000, kMostRemade = size_t{1} << 18;

// t_, unsqueeze_ and similar.
bool is_inplace_view(const std::string& target) {
  const auto schema = find_schema(target);
  return schema && schema->is_inplace_view;
}

}  // namespace

std::string functional_target(std::string_view target) {
  const size_t dot = target.rfind('.');
  std::string name(target);
  if (dot != std::string_view::npos && dot > 0 && target[dot - 1] == '_') name.erase(dot - 1, 1);
  return name;
}

bool is_transparent(const Node& node) {
  return node.target.starts_with("higher_order.wrap_with_set_grad_enabled");
}

Importer::Importer(const Graph& source, core::Graph& graph, std::vector<SizeCheck>* checks)
    : source_(source),
      graph_(graph),
      aliases_(find_aliases(source)),
      needed_(values_needed(source, aliases_)),
      slots_(source.values.size()),
      seen_(source.values.size()),
      checks_of_parent_(checks) {}

void Importer::run() {
  for (; position_ < source_.nodes.size(); ++position_) {
    const size_t i = position_;
    const Node& node = source_.nodes[i];
    graph_.current_source = source_line(node.source);
    graph_.current_name = node.name;
    if (is_transparent(node)) {
      inline_graph(node);
    } else if (is_control_flow(node)) {
      import_control_flow(node);
    } else if (aliases_.target[i]) {
      import_in_place(i);
    } else {
      import_node(i);
    }
  }
}

// `node`: with the functional variant as its target; errors name `reported`.
const Converter& Importer::converter_of(const Node& node, const Node& reported) const {
  const bool is_complex = is_complex_call(source_, reported);
  const Converter* converter = is_complex ? find_complex_converter(node.target) : find_converter(node.target);
  if (converter == nullptr)
    refuse_node(reported, is_complex ? "complex numbers" : reason_without_converter(reported.target));
  return *converter;
}

void Importer::import_node(size_t index) {
  Node node = source_.nodes[index];
  const Converter& converter = converter_of(node, source_.nodes[index]);
  complete_arguments(node);
  const size_t before = graph_.nodes().size();
  apply(converter, node);
  const auto is_needed = [&](const auto& output) { return output && needed_.contains(*output); };
  if (!node.outputs.empty() && std::ranges::none_of(node.outputs, is_needed)) drop_guards_after(before);
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (const auto& output = node.outputs[i])
      require_recorded(node, i, value(*output), slots_[*output], graph_.symbols);
  }
}

// Shape rules see calls that torch accepted: if they fail, the gap is ours, not the program's.
void Importer::apply(const Converter& converter, const Node& node) {
  Call call(*this, node);
  if (!is_complex_call(source_, node)) require_one_dtype(call);
  try {
    converter.convert(call);
  } catch (const UserError& error) {
    if (error.details().node.empty()) throw;
    refuse_node(node, error.details().message);
  }
}

// Guards of nodes that nothing reads: another size would change what they compute, and eager runs them for
// any.
void Importer::drop_guards_after(size_t nodes_before) {
  const std::vector<core::Node*> nodes = graph_.node_list();
  for (core::Node* node : std::span(nodes).subspan(nodes_before))
    if (ops::is_guard(*node)) graph_.erase(node);
}

// An in-place call is its functional variant, followed by a write of the result.
void Importer::import_in_place(size_t index) {
  Node node = source_.nodes[index];
  complete_arguments(node);
  node.target = functional_target(node.target);
  take_names_of_twin(node);
  const Converter& converter = converter_of(node, source_.nodes[index]);
  const ValueId target = *aliases_.target[index];
  core::Value* before = tensor(target);
  node.outputs = {target};
  apply(converter, node);
  core::Value** made = std::get_if<core::Value*>(&slots_[target]);
  if (made == nullptr) refuse_node(node, "it returns no tensor");
  const bool is_detached = node.target == "aten.detach.default";  // a complex value is rejoined by it
  core::Value* result = is_detached ? before : *made;
  slots_[target] = before;
  if (result != before && is_inplace_view(source_.nodes[index].target))
    refuse_node(source_.nodes[index], "it changes the memory layout of a tensor");
  result = converted(graph_, result, before->type.dtype);
  if (result->type.shape != before->type.shape)
    result = graph_.call(ops::expand, {result}, ops::NewShape{before->type.shape});
  write(target, result);
  for (const auto& output : source_.nodes[index].outputs) {
    if (output && *output != target) slots_[*output] = result;
  }
}

void Importer::inline_graph(const Node& node) {
  const Graph* body = nullptr;
  std::vector<ImportedValue> operands;
  for (const NamedArgument& argument : node.arguments) {
    if (const auto* graph = std::get_if<std::shared_ptr<Graph>>(&argument.argument.value))
      body = graph->get();
    if (const auto* id = std::get_if<ValueId>(&argument.argument.value)) {
      operands.push_back(value(*id).kind == ValueKind::kTensor ? ImportedValue(tensor(*id)) : slots_[*id]);
    }
  }
  if (body == nullptr) refuse_node(node, "it has no graph");
  Importer inner(*body, graph_);
  inner.draw_from(random_);
  const std::vector<ValueId> inputs = inner.bind_constants(node);
  if (operands.size() != inputs.size()) refuse_node(node, "its graph does not match its operands");
  for (size_t i = 0; i < operands.size(); ++i) {
    if (inner.aliases().written.contains(inputs[i])) refuse_node(node, "its graph writes an operand");
    inner.bind(inputs[i], operands[i]);
  }
  inner.run();
  for (size_t i = 0; i < node.outputs.size() && i < body->outputs.size(); ++i) {
    const auto* id = std::get_if<ValueId>(&body->outputs[i].value.value);
    if (id == nullptr || !node.outputs[i]) continue;
    const bool is_tensor = inner.value(*id).kind == ValueKind::kTensor;
    give(*node.outputs[i], is_tensor ? ImportedValue(inner.tensor(*id)) : inner.slots_[*id]);
  }
}

// Constants of the graph that `call` runs. Returns its other inputs, which are operands.
std::vector<ValueId> Importer::bind_constants(const Node& call) {
  std::vector<ValueId> operands;
  for (const Input& input : source_.inputs) {
    if (!input.data) {
      operands.push_back(input.value);
      continue;
    }
    if (aliases_.written.contains(input.value)) refuse_node(call, "its graph writes a constant");
    bind(input.value, add_constant(graph_, *input.data));
  }
  return operands;
}

core::Value* Importer::tensor(ValueId id) {
  const auto version = versions_.find(aliases_.root(id));
  if (version != versions_.end() && seen_[id] != version->second && aliases_.is_view(id)) {
    const auto maker = aliases_.made_by.find(id);
    if (maker != aliases_.made_by.end() && (depth_ == kDeepest || ++remade_ > kMostRemade))
      refuse_node(source_.nodes[maker->second], "too many views of views that are written");
    ++depth_;
    if (maker == aliases_.made_by.end() || aliases_.target[maker->second]) {
      slots_[id] =
          tensor(aliases_.base.at(id));  // another name, or the result of an in-place call: the written value
    } else {
      import_node(maker->second);  // from the current value of its base
    }
    seen_[id] = version->second;
    --depth_;
  }
  core::Value** found = std::get_if<core::Value*>(&slots_[id]);
  if (found == nullptr) refuse_missing(id);
  return *found;
}

// A converter may omit results that inference seldom uses: saved statistics, indices of maxima.
void Importer::refuse_missing(ValueId id) const {
  for (const Node& node : std::span(source_.nodes).first(position_)) {
    if (std::ranges::find(node.outputs, std::optional(id)) != node.outputs.end())
      refuse_node(node, fmt::format("its result {} is not computed", source_.values[id].name));
  }
  throw UserError("INGOT-U521", fmt::format("value {} of the program is used before it is computed",
                                            source_.values[id].name));
}

std::optional<Dim> Importer::integer(ValueId id) {
  if (const Dim* dim = std::get_if<Dim>(&slots_[id])) return *dim;
  return source_.values[id].integer;
}

std::optional<double> Importer::number(ValueId id) {
  if (const double* number = std::get_if<double>(&slots_[id])) return *number;
  return std::nullopt;
}

core::Value* Importer::real_of_sizes(ValueId id) {
  const auto* real = std::get_if<RealOfSizes>(&slots_[id]);
  return real == nullptr ? nullptr : real->value;
}

void Importer::give(ValueId id, ImportedValue result) {
  slots_[id] = std::move(result);
  const auto version = versions_.find(aliases_.root(id));
  if (version != versions_.end()) seen_[id] = version->second;
}

void Importer::write(ValueId id, core::Value* written) {
  const uint64_t version = ++versions_[aliases_.root(id)];
  while (true) {
    core::Value* before = std::get<core::Value*>(slots_[id]);
    slots_[id] = written;
    seen_[id] = version;
    if (!aliases_.is_view(id)) return;
    const ValueId base = aliases_.base.at(id);
    core::Value* whole = std::get<core::Value*>(slots_[base]);
    const auto maker = aliases_.made_by.find(id);
    if (maker != aliases_.made_by.end())
      written = scattered(whole, before, written, source_.nodes[maker->second]);
    id = base;
  }
}

// `whole` with the elements that `view` shows replaced by `written`. The view's nodes are inverted one by
// one.
core::Value* Importer::scattered(core::Value* whole, core::Value* view, core::Value* written,
                                 const Node& node) {
  for (; view != whole; view = view->producer->operands[0]) written = scattered_once(view, written, node);
  return written;
}

core::Value* Importer::scattered_once(core::Value* view, core::Value* written, const Node& node) {
  core::Node* made = view->producer;
  if (made == nullptr || !made->op->traits.has(Trait::kView)) refuse_node(node, "a write through this view");
  core::Value* operand = made->operands[0];
  if (made->op->traits.has(Trait::kKeepsOrder))
    return graph_.call(ops::reshape, {written}, ops::NewShape{operand->type.shape});
  if (made->op == &ops::transpose) {
    const auto order = made->attributes<ops::Permutation>().order;
    ops::Permutation inverse{std::vector<int64_t>(order.size())};
    for (size_t i = 0; i < order.size(); ++i) inverse.order[order[i]] = static_cast<int64_t>(i);
    return graph_.call(ops::transpose, {written}, inverse);
  }
  if (made->op == &ops::slice)
    return graph_.call(ops::slice_scatter, {operand, written}, made->attributes<ops::Slice>());
  refuse_node(node, fmt::format("a write through {}", made->op->name));
}

}  // namespace ingot::core::aten
