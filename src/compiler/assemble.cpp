// SPDX-License-Identifier: Apache-2.0
#include "compiler/assemble.h"

#include <map>
#include <set>
#include <utility>

#include "compiler/other_tensors.h"
#include "compiler/output_names.h"
#include "compiler/profile.h"
#include "ops/model_source.h"
#include "plan/plan.h"
#include "support/error.h"

namespace ingot::core {
namespace {

// Fills the engine's tables from both graphs.
class Assembly {
 public:
  explicit Assembly(BuildParts& parts) : parts_(parts), engine_(std::make_shared<EngineData>()) {}

  std::shared_ptr<EngineData> run(BuildReport& report) {
    add_sources();
    add_weights(parts_.split.main);
    add_weights(parts_.split.init);
    add_nodes(parts_.lowered.init);
    add_nodes(parts_.lowered.main);
    describe();
    plan(report);
    engine_->images = std::move(parts_.images);
    engine_->checks = parts_.model.checks;
    return engine_;
  }

 private:
  // Only weights that are read become sources, in the order of the model.
  void add_sources() {
    std::set<int64_t> read;
    collect_sources(parts_.split.init, read);
    collect_sources(parts_.split.main, read);
    for (const int64_t number : read) {
      const aten::WeightSource& weight = parts_.model.weights.at(static_cast<size_t>(number));
      source_ids_[number] = static_cast<uint32_t>(engine_->sources.size());
      const Tensor dense = dense_values(weight);
      engine_->sources.push_back({.name = weight.name,
                                  .dtype = dense.dtype,
                                  .shape = dense.shape,
                                  .digest = {},
                                  .is_saved = weight.is_saved,
                                  .data = dense.data});
    }
    engine_->others = other_tensors(parts_.program, parts_.model, engine_->sources);
  }

  static void collect_sources(const Graph& graph, std::set<int64_t>& numbers) {
    for (const auto& node : graph.nodes()) {
      if (node->op != &ops::weight) continue;
      const auto source = node->attributes<ops::ModelSource>();
      invariant((source.source >= 0) != (source.init_output >= 0),
                "a weight has neither a source nor an init output");
      if (source.source >= 0) numbers.insert(source.source);
    }
  }

  void add_weights(const Graph& graph) {
    for (const auto& node : graph.nodes()) {
      if (node->op == &ops::constant) {
        add_constant(*node);
      } else if (node->op == &ops::weight) {
        add_weight(*node);
      }
    }
  }

  void add_constant(const Node& node) {
    WeightData entry;
    entry.name = node.results[0]->name;
    entry.type = node.results[0]->type;
    entry.data = node.literal->data;
    entry.bytes = node.literal->bytes();
    ids_[node.results[0]] = add_entry(std::move(entry));
  }

  void add_weight(const Node& node) {
    const auto source = node.attributes<ops::ModelSource>();
    const auto known = weight_ids_.find({source.source, source.init_output});
    if (known != weight_ids_.end()) {
      ids_[node.results[0]] = known->second;
      return;
    }
    WeightData entry;
    entry.name = source.name;
    entry.type = node.results[0]->type;
    entry.bytes = storage_bytes(entry.type).constant().value();
    if (source.source >= 0) {
      const uint32_t index = source_ids_.at(source.source);
      entry.origin = FromSource{index};
      entry.data = engine_->sources[index].data;
    } else {
      entry.origin = FromInit{static_cast<uint32_t>(source.init_output)};
    }
    ids_[node.results[0]] = weight_ids_[{source.source, source.init_output}] = add_entry(std::move(entry));
  }

  uint32_t add_entry(WeightData entry) {
    engine_->weights.push_back(std::move(entry));
    return static_cast<uint32_t>(engine_->weights.size() - 1);
  }

  // Model nodes that a step computes, including fused ones.
  void add_nodes(std::vector<NodeStep>& steps) {
    for (NodeStep& step : steps) {
      if (step.node->graphs.empty()) step.node_records.push_back(record(*step.node));
      for (const auto& body : step.node->graphs) {
        for (const auto& node : body->nodes()) step.node_records.push_back(record(*node));
      }
    }
  }

  // Without duplicates: one node may have several steps.
  uint32_t record(const Node& node) {
    const auto [entry, is_new] = records_.try_emplace(&node, static_cast<uint32_t>(engine_->nodes.size()));
    if (is_new) {
      engine_->nodes.push_back(
          {.name = node.name, .op = std::string(node.op->name), .source = node.source.to_string()});
    }
    return entry->second;
  }

  void describe() {
    engine_->name = parts_.program.argument_names.empty() ? "model" : parts_.split.main.name;
    engine_->origin = parts_.program.origin;
    engine_->key = std::move(parts_.key);
    engine_->target = parts_.target.text();
    engine_->weights_form = WeightsForm::kOriginal;
    engine_->signature = {.argument_names = parts_.program.argument_names,
                          .input_tree = parts_.program.input_tree,
                          .output_tree = parts_.program.output_tree,
                          .inputs = parts_.model.input_slots,
                          .outputs = parts_.model.output_slots,
                          .mutated_inputs = {}};
    for (const aten::StateSource& state : parts_.model.states) {
      engine_->signature.mutated_inputs.push_back(state.mutated_input);
      engine_->state_values.push_back(state.initial ? to_dense(state.initial->view) : Tensor{});
    }
  }

  void plan(BuildReport& report) {
    const Split& split = parts_.split;
    const SymbolValues typical = typical_sizes(split.main.symbols);
    PlanReport planned;
    const Place place = parts_.place;
    if (place.kind == Place::Kind::kDevice) engine_->devices = {parts_.target.backend};
    engine_->init = plan_program({&split.init, std::move(parts_.lowered.init), ids_, {}, place});
    engine_->main =
        plan_program({&split.main, std::move(parts_.lowered.main), ids_, typical, place}, &planned);
    name_outputs();
    order_states();
    report.arena_bytes = planned.arena;
    report.arena_lower_bound = planned.lower_bound;
    report.kernels = engine_->init.steps.size() + engine_->main.steps.size();
    report.distinct_kernels = parts_.images.size();
  }

  void name_outputs() {
    const std::vector<std::string> names = output_names(parts_.program, parts_.model);
    invariant(names.size() == engine_->main.outputs.size(), "the program's outputs do not match the model's");
    for (size_t i = 0; i < names.size(); ++i) engine_->main.outputs[i].name = names[i];
  }

  // The program lists the states of its graph, in order; the tables of values and bindings follow it.
  void order_states() {
    std::vector<std::optional<uint32_t>> bound;
    std::vector<Tensor> values;
    for (const auto& node : parts_.split.main.nodes()) {
      if (node->op != &ops::state) continue;
      const auto position = static_cast<size_t>(node->attributes<ops::ModelSource>().source);
      bound.push_back(engine_->signature.mutated_inputs.at(position));
      values.push_back(engine_->state_values.at(position));
    }
    invariant(bound.size() == engine_->main.states.size(), "the program's states do not match its graph's");
    engine_->signature.mutated_inputs = std::move(bound);
    engine_->state_values = std::move(values);
  }

  BuildParts& parts_;
  std::shared_ptr<EngineData> engine_;
  std::map<int64_t, uint32_t> source_ids_;                      // by index among the model's weights
  std::map<std::pair<int64_t, int64_t>, uint32_t> weight_ids_;  // by source and output of init
  std::map<const Value*, uint32_t> ids_;
  std::map<const Node*, uint32_t> records_;
};

}  // namespace

Tensor dense_values(const aten::WeightSource& weight) {
  const TensorView& view = weight.value.view;
  if (!is_dense(view)) return to_dense(view);
  return {std::shared_ptr<std::byte>(std::const_pointer_cast<void>(weight.value.owner), view.data),
          view.dtype, view.shape};
}

std::shared_ptr<EngineData> assemble(BuildParts parts, BuildReport& report) {
  return Assembly(parts).run(report);
}

}  // namespace ingot::core
