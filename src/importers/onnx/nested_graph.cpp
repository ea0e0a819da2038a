// SPDX-License-Identifier: Apache-2.0
#include "importers/onnx/nested_graph.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/core.h>

#include "ops/weight_or_constant.h"

namespace ingot::core::onnx {
namespace {

struct OutsideNames {
  std::set<std::string> seen;
  std::vector<std::string> names;
};

void add_names(const GraphDef& graph, std::set<std::string> own, OutsideNames& found, size_t depth) {
  if (depth > kMostNested) refuse("graphs are nested too deep");
  for (const ValueDef& input : graph.inputs) own.insert(input.name);
  for (const TensorDef& value : graph.initializers) own.insert(value.name);
  const auto use = [&](const std::string& name) {
    if (!name.empty() && !own.contains(name) && found.seen.insert(name).second) found.names.push_back(name);
  };
  for (const NodeDef& node : graph.nodes) {
    for (const std::string& name : node.inputs) use(name);
    for (const AttributeDef& attribute : node.attributes)
      if (attribute.graph != nullptr) add_names(*attribute.graph, own, found, depth + 1);
    own.insert(node.outputs.begin(), node.outputs.end());
  }
  for (const ValueDef& output : graph.outputs) use(output.name);
}

std::string result_name(size_t index) { return fmt::format("result {}", index); }

}  // namespace

std::vector<std::string> names_from_outside(std::span<const GraphDef* const> graphs) {
  OutsideNames found;
  for (const GraphDef* graph : graphs) add_names(*graph, {}, found, 0);
  return std::move(found.names);
}

NestedGraph::NestedGraph(Call& call, const GraphDef& def, std::string name)
    : def_(def), graph_(std::move(name)), scope_(call.scope().inside(graph_)) {
  graph_.symbols = call.graph().symbols;
  graph_.current_source = call.graph().current_source;
  graph_.current_name = call.graph().current_name;
}

const std::string& NestedGraph::next_input() {
  if (bound_ == def_.inputs.size()) refuse_node("it has more inputs than its graph");
  return def_.inputs[bound_++].name;
}
void NestedGraph::bind(Value* value) { scope_->give(next_input(), value); }
void NestedGraph::bind(Sizes sizes) { scope_->give(next_input(), std::move(sizes)); }

std::vector<Value*> NestedGraph::bring_in(Scope& outer, std::span<const std::string> names) {
  std::vector<Value*> operands;
  for (const std::string& name : names) {
    if (std::optional<Sizes> sizes = outer.sizes(name)) {
      scope_->give(name, std::move(*sizes));
      continue;
    }
    Value* value = outer.tensor(name);
    require(outer.element_type(value) == value->type.dtype, "its graph reads elements of four bits");
    if (ops::is_weight_or_constant(value->producer)) {
      scope_->give(name, graph_.add_copy(*value->producer, {})->results[0]);
    } else if (const std::optional<Tensor> known = outer.literal(name)) {
      scope_->give(name, graph_.add_constant(*known));
    } else {
      scope_->give(name, graph_.add_input(value->name, value->type));
      operands.push_back(value);
    }
  }
  return operands;
}

std::vector<Value*> NestedGraph::import() {
  if (bound_ < def_.inputs.size()) refuse_node("it has fewer inputs than its graph");
  std::vector<std::string> names;
  for (size_t i = 0; i < def_.outputs.size(); ++i) names.push_back(result_name(i));
  scope_->run(def_, names);
  std::vector<Value*> results;
  for (const std::string& name : names) {
    results.push_back(scope_->tensor(name));
    require(scope_->element_type(results.back()) == results.back()->type.dtype,
            "its graph gives elements of four bits");
  }
  return results;
}

bool NestedGraph::is_true(size_t index) {
  const std::optional<Sizes> known = scope_->sizes(result_name(index));
  return known && known->is_constant() && known->elements.size() == 1 && known->elements[0] != Dim(0);
}

Graph NestedGraph::take(std::vector<Value*> outputs) {
  graph_.outputs = std::move(outputs);
  graph_.symbols.clear();  // the outermost graph declares all
  return std::move(graph_);
}

}  // namespace ingot::core::onnx
