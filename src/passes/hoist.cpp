// SPDX-License-Identifier: Apache-2.0
#include "passes/hoist.h"

#include <algorithm>
#include <map>

#include "ir/symbolic.h"
#include "ops/model_source.h"
#include "ops/ops.h"
#include "ops/weight_or_constant.h"

namespace ingot::core {
namespace {

using Nodes = std::set<const Node*>;

// Whether the node's value is the same in every run.
bool is_invariant(const Node& node, const Nodes& invariant) {
  if (ops::is_weight_or_constant(&node)) return true;
  const Traits traits = node.op->traits;
  if (traits.has(Trait::kSource) || traits.has(Trait::kRandom) || traits.has(Trait::kSideEffect))
    return false;
  if (traits.has(Trait::kControlFlow)) return false;
  if (has_symbolic_attributes(node)) return false;
  if (std::ranges::any_of(node.results, [](const Value* each) { return is_symbolic(each->type.shape); }))
    return false;
  return std::ranges::all_of(node.operands, [&](const Value* operand) {
    return operand == nullptr || (operand->producer != nullptr && invariant.contains(operand->producer));
  });
}

// A value in the graph of a branch or loop, and the same in the graph around it.
struct Lifted {
  Graph* body;
  Value *inner, *outer;
};

// A double, since sums of huge counts exceed 64 bits.
double elements_or_many(const Value* value) {
  return static_cast<double>(element_count(value->type).constant().value_or(INT64_MAX));
}

// Fills and broadcasts: recomputing them is cheaper than storing them. Excludes joins and padding.
bool is_expansion(const Node& node) {
  if (node.op->traits.has(Trait::kSource)) return false;
  if (node.operands.empty()) return true;
  double given = 0;
  for (const Value* operand : node.operands) given += operand == nullptr ? 0 : elements_or_many(operand);
  return node.op->traits.has(Trait::kView) && given <= elements_or_many(node.results[0]) / 2;
}

// Whether a body computes the value anew each time that it runs, though it never changes.
bool is_lifted(const Value* value, const Nodes& invariant) {
  const Node* producer = value == nullptr ? nullptr : value->producer;
  return producer != nullptr && invariant.contains(producer) && !producer->op->traits.has(Trait::kSource) &&
         !is_expansion(*producer);
}

// Copies what `value` is computed from into `graph`.
Value* lift(Graph& graph, const Value& value, std::map<const Value*, Value*>& copies) {
  if (const auto known = copies.find(&value); known != copies.end()) return known->second;
  std::vector<Value*> operands;
  for (const Value* operand : value.producer->operands)
    operands.push_back(operand == nullptr ? nullptr : lift(graph, *operand, copies));
  const Node* copy = graph.add_copy(*value.producer, std::move(operands));
  for (size_t i = 0; i < copy->results.size(); ++i) {
    copy->results[i]->type = value.producer->results[i]->type;
    copies.emplace(value.producer->results[i], copy->results[i]);
  }
  return copies.at(&value);
}

// Copies what bodies compute from weights alone in front of them, from the inside out; outer graphs come
// first.
std::vector<Lifted> lift_from_bodies(Graph& graph) {
  std::vector<Lifted> lifted;
  for (Node* node : graph.node_list()) {
    if (!node->op->traits.has(Trait::kControlFlow)) continue;
    for (const auto& body : node->graphs) {
      std::vector<Lifted> inside = lift_from_bodies(*body);
      const Nodes invariant = invariant_nodes(*body);
      std::set<Value*> values(body->outputs.begin(), body->outputs.end());
      for (const auto& user : body->nodes()) {
        if (!invariant.contains(user.get())) values.insert(user->operands.begin(), user->operands.end());
      }
      for (const Lifted& inner : inside) values.insert(inner.outer);
      std::map<const Value*, Value*> copies;
      Graph::InsertBefore scope(graph, node);
      for (const auto& producer : body->nodes()) {
        for (Value* value : producer->results) {
          if (values.contains(value) && is_lifted(value, invariant))
            lifted.push_back({body.get(), value, lift(graph, *value, copies)});
        }
      }
      lifted.insert(lifted.end(), inside.begin(), inside.end());
    }
  }
  return lifted;
}

// Bodies read the weights that took the place of what was lifted.
void return_to_bodies(const std::vector<Lifted>& lifted, std::map<const Value*, const Value*>& weights) {
  for (const auto& [body, inner, outer] : lifted) {
    const auto weight = weights.find(outer);
    if (weight == weights.end()) continue;
    Graph::InsertBefore scope(*body, inner->producer);
    Value* own = body->add_copy(*weight->second->producer, {})->results[0];
    own->type = weight->second->type;
    weights.emplace(inner, own);
    body->replace_uses(inner, own);
  }
  for (const Lifted& each : lifted) each.body->erase_dead_nodes();
}

class Hoist {
 public:
  explicit Hoist(Graph graph)
      : main_(std::move(graph)), lifted_(lift_from_bodies(main_)), invariant_(invariant_nodes(main_)) {}

  Split run() {
    for (const Lifted& lifted : lifted_) cross(lifted.outer);
    for (const auto& node : main_.nodes()) {
      if (!invariant_.contains(node.get())) cross_operands(*node);
    }
    for (Value* output : main_.outputs) cross(output);
    for (const Update& update : main_.updates) cross(update.value);
    Graph init = make_init();
    for (size_t k = 0; k < crossing_.size(); ++k) replace(crossing_[k], k);
    return_to_bodies(lifted_, weights_);
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
    for (size_t i = to.size();
         i-- > 0;) {  // side effects stay in main, and must not keep their operands alive
      if (!invariant_.contains(from[i])) init.erase(to[i]);
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
    weights_.emplace(value, weight);
    main_.replace_uses(value, weight);
  }

  Graph main_;
  std::vector<Lifted> lifted_;
  Nodes invariant_;
  std::vector<Value*> crossing_;
  std::map<const Value*, const Value*> weights_;  // of crossing_ -> what main reads instead
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
