// SPDX-License-Identifier: Apache-2.0
#include "compiler/assemble.h"

#include <map>
#include <set>
#include <utility>

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

  AssembledEngine run(BuildReport& report) {
    add_sources();
    add_weights(parts_.split.main);
    add_weights(parts_.split.init);
    add_nodes(parts_.lowered.init);
    add_nodes(parts_.lowered.main);
    plan(report);
    add_states();
    engine_->key = std::move(parts_.key);
    engine_->target = parts_.target.text();
    engine_->weights_form = WeightsForm::kOriginal;
    bind_engine(*engine_, origins_, parts_.model);
    return {engine_, std::move(origins_)};
  }

 private:
  // Only weights that are read become sources, in the order of the model.
  void add_sources() {
    std::set<int64_t> read;
    collect_sources(parts_.split.init, read);
    collect_sources(parts_.split.main, read);
    for (const int64_t number : read) {
      const TensorView& view = parts_.model.model.weights.at(static_cast<size_t>(number)).value.view;
      source_ids_[number] = static_cast<uint32_t>(engine_->sources.size());
      SourceWeight& source = engine_->sources.emplace_back();
      source.dtype = view.dtype;
      source.shape = view.shape;
      origins_.sources.push_back(names().source_of(ops::weight, number));
    }
  }

  static void collect_sources(const Graph& graph, std::set<int64_t>& numbers) {
    for (const auto& node : graph.nodes()) {
      for (const auto& nested : node->graphs) collect_sources(*nested, numbers);
      if (node->op != &ops::weight) continue;
      const auto source = node->attributes<ops::ModelSource>();
      invariant((source.source >= 0) != (source.init_output >= 0),
                "a weight has neither a source nor an init output");
      if (source.source >= 0) numbers.insert(source.source);
    }
  }

  void add_weights(const Graph& graph) {
    for (const auto& node : graph.nodes()) {
      for (const auto& nested : node->graphs) add_weights(*nested);
      if (node->op == &ops::constant) {
        add_constant(*node);
      } else if (node->op == &ops::weight) {
        add_weight(*node);
      }
    }
  }

  void add_constant(const Node& node) {
    WeightData entry;
    entry.type = node.results[0]->type;
    entry.data = node.literal->data;
    entry.bytes = node.literal->bytes();
    ids_[node.results[0]] = add_entry(std::move(entry), origin_of(*node.results[0], names()));
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
      entry.origin = FromSource{source_ids_.at(source.source)};
    } else {
      entry.origin = FromInit{static_cast<uint32_t>(source.init_output)};
    }
    ids_[node.results[0]] = weight_ids_[{source.source, source.init_output}] = add_entry(std::move(entry));
  }

  uint32_t add_entry(WeightData entry, NameOrigin name = {}) {
    engine_->weights.push_back(std::move(entry));
    origins_.weights.push_back(std::move(name));
    return static_cast<uint32_t>(engine_->weights.size() - 1);
  }

  // Model nodes that a step computes, including fused ones.
  void add_nodes(std::vector<NodeStep>& steps) {
    for (NodeStep& step : steps) {
      for (NestedSteps& nested : step.nested) add_nodes(nested.steps);
      if (step.node->op->traits.has(Trait::kControlFlow)) {
        step.node_records.push_back(record(*step.node));
        continue;
      }
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
      engine_->nodes.push_back({.name = {}, .op = std::string(node.op->name), .source = {}});
      origins_.nodes.push_back(call_of(node, names()));
    }
    return entry->second;
  }

  void plan(BuildReport& report) {
    const Split& split = parts_.split;
    const SymbolValues typical = typical_sizes(split.main.symbols);
    PlanReport planned;
    const Place place = parts_.place;
    if (place.kind == Place::Kind::kDevice) engine_->devices = {parts_.target.backend};
    const std::string& backend = parts_.target.backend;
    engine_->init = plan_program({&split.init, std::move(parts_.lowered.init), ids_, {}, place, backend});
    engine_->main =
        plan_program({&split.main, std::move(parts_.lowered.main), ids_, typical, place, backend}, &planned);
    origins_.init = origins_of_buffers(engine_->init, split.init, names());
    origins_.main = origins_of_buffers(engine_->main, split.main, names());
    report.arena_bytes = planned.arena;
    report.arena_lower_bound = planned.lower_bound;
    report.kernels = engine_->init.steps.size() + engine_->main.steps.size();
  }

  // The program lists the states of its graph, in order.
  void add_states() {
    for (const auto& node : parts_.split.main.nodes()) {
      if (node->op != &ops::state) continue;
      origins_.states.push_back(names().source_of(ops::state, node->attributes<ops::ModelSource>().source));
    }
    invariant(origins_.states.size() == engine_->main.states.size(),
              "the program's states do not match its graph's");
  }

  const ModelNames& names() const { return parts_.model.names; }

  BuildParts& parts_;
  std::shared_ptr<EngineData> engine_;
  EngineOrigins origins_;
  std::map<int64_t, uint32_t> source_ids_;                      // by index among the model's weights
  std::map<std::pair<int64_t, int64_t>, uint32_t> weight_ids_;  // by source and output of init
  std::map<const Value*, uint32_t> ids_;
  std::map<const Node*, uint32_t> records_;
};

}  // namespace

AssembledEngine assemble(BuildParts parts, BuildReport& report) { return Assembly(parts).run(report); }

}  // namespace ingot::core
