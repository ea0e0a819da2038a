// SPDX-License-Identifier: Apache-2.0
#include "passes/hoist.h"

#include <algorithm>

#include "ops/model_source.h"
#include "ops/ops.h"

namespace ingot::core {
namespace {

using Nodes = std::set<const Node*>;

bool has_symbols(const Shape& shape) {
  return std::ranges::any_of(shape, [](const Dim& dim) { return !dim.is_constant(); });
}

bool mentions_symbols(const AttributeValue& value) {
  if (const Dim* dim = std::get_if<Dim>(&value)) return !dim->is_constant();
  if (const auto* dims = std::get_if<std::vector<Dim>>(&value)) return has_symbols(*dims);
  return false;
}

// Whether the node's value is the same in every run.
bool is_invariant(const Node& node, const Nodes& invariant) {
  if (node.op == &ops::weight || node.op == &ops::constant) return true;
  const Traits traits = node.op->traits;
  if (traits.has(Trait::kSource) || traits.has(Trait::kRandom) || traits.has(Trait::kSideEffect))
    return false;
  if (traits.has(Trait::kControlFlow)) return false;
  if (std::ranges::any_of(node.values, mentions_symbols)) return false;
  if (std::ranges::any_of(node.results, [](const Value* r) { return has_symbols(r->type.shape); }))
    return false;
  return std::ranges::all_of(node.operands, [&](const Value* operand) {
    return operand == nullptr || (operand->producer != nullptr && invariant.contains(operand->producer));
  });
}

int64_t elements_or_many(const Value* value) {
  return element_count(value->type).constant().value_or(INT64_MAX);
}

// Fills and broadcasts: recomputing them is cheaper than storing them. Excludes joins and padding.
bool is_expansion(const Node& node) {
  if (node.op->traits.has(Trait::kSource)) return false;
  if (node.operands.empty()) return true;
  int64_t given = 0;
  for (const Value* operand : node.operands) given += operand == nullptr ? 0 : elements_or_many(operand);
  return node.op->traits.has(Trait::kView) && given <= elements_or_many(node.results[0]) / 2;
}

class Hoist {
 public:
  explicit Hoist(Graph graph) : main_(std::move(graph)), invariant_(invariant_nodes(main_)) {}

  Split run() {
    for (const auto& node : main_.nodes()) {
      if (!invariant_.contains(node.get())) cross_operands(*node);
    }
    for (Value* output : main_.outputs) cross(output);
    for (const Update& update : main_.updates) cross(update.value);
    Graph init = make_init();
    for (size_t k = 0; k < crossing_.size(); ++k) replace(crossing_[k], k);
    main_.erase_dead_nodes();
    return {std::move(init), std::move(main_)};
  }

 private:
  void cross_operands(const Node& node) {
    for (Value* operand : node.operands) {
      if (operand != nullptr) cross(operand);
    }
  }

  // `value` is used at run time: it comes from init, unless it is a source or cheap to recompute.
  void cross(Value* value) {
    const Node* producer = value->producer;
    if (producer == nullptr || !invariant_.contains(producer) || producer->op->traits.has(Trait::kSource))
      return;
    if (is_expansion(*producer)) {
      cross_operands(*producer);
    } else if (std::ranges::find(crossing_, value) == crossing_.end()) {
      crossing_.push_back(value);
    }
  }

  Graph make_init() {
    Graph init = main_.clone();
    init.name = "init";
    init.outputs.clear();
    init.updates.clear();
    const auto from = main_.node_list(), to = init.node_list();
    for (const Value* value : crossing_) {
      const size_t position = std::ranges::find(from, value->producer) - from.begin();
      init.outputs.push_back(to[position]->results[value->index]);
    }
    for (Node* node : init.node_list()) {  // stay in main, and must not keep their operands alive
      if (node->op->traits.has(Trait::kSideEffect)) init.erase(node);
    }
    init.erase_dead_nodes();
    init.remove_unused_inputs();
    init.symbols.clear();
    return init;
  }

  void replace(Value* value, size_t number) {
    Graph::InsertBefore scope(main_, value->producer);
    Value* weight = main_.call(ops::weight, {},
                               ops::ModelSource{.name = "init." + std::to_string(number),
                                                .dtype = value->type.dtype,
                                                .shape = value->type.shape,
                                                .layout = {},
                                                .init_output = static_cast<int64_t>(number)});
    weight->type = value->type;  // including the layout
    main_.replace_uses(value, weight);
  }

  Graph main_;
  Nodes invariant_;
  std::vector<Value*> crossing_;
};

}  // namespace

std::set<const Node*> invariant_nodes(const Graph& graph) {
  Nodes invariant;
  for (const auto& node : graph.nodes()) {
    if (is_invariant(*node, invariant)) invariant.insert(node.get());
  }
  return invariant;
}

Split hoist(Graph graph) { return Hoist(std::move(graph)).run(); }

}  // namespace ingot::core
