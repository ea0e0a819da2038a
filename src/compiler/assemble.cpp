// SPDX-License-Identifier: Apache-2.0
#include "compiler/assemble.h"

#include <algorithm>

#include "compiler/profile.h"
#include "ops/attributes.h"
#include "support/error.h"

namespace ingot::core {
namespace {

constexpr std::string_view kInitPrefix = "init.";

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
    for (const Image& image : engine_->images) engine_->needs.bits |= image.needs.bits;
    return engine_;
  }

 private:
  // Only weights that something reads become sources, in the order of the model.
  void add_sources() {
    for (const aten::WeightSource& weight : parts_.model.weights) {
      if (!is_read(weight.name)) continue;
      source_ids_[weight.name] = static_cast<int32_t>(engine_->sources.size());
      Tensor dense = is_dense(weight.data) ? borrow(weight) : to_dense(weight.data);
      engine_->sources.push_back({.name = weight.name,
                                  .dtype = dense.dtype,
                                  .shape = dense.shape,
                                  .digest = {},
                                  .data = dense.data});
    }
  }

  static bool is_dense(const TensorView& view) { return view.strides == row_major_strides(view.shape); }
  static Tensor borrow(const aten::WeightSource& weight) {
    return {std::shared_ptr<std::byte>(std::const_pointer_cast<void>(weight.owner), weight.data.data),
            weight.data.dtype, weight.data.shape};
  }

  bool is_read(const std::string& name) const {
    const auto reads = [&](const Graph& graph) {
      return std::ranges::any_of(graph.nodes(), [&](const auto& node) {
        return node->op == &ops::weight && node->template attributes<ops::NamedSource>().name == name;
      });
    };
    return reads(parts_.split.init) || reads(parts_.split.main);
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
    entry.constant = true;
    entry.data = node.literal->data;
    entry.bytes = node.literal->bytes();
    ids_[node.results[0]] = add_entry(std::move(entry));
  }

  void add_weight(const Node& node) {
    const std::string name = node.attributes<ops::NamedSource>().name;
    const auto known = weight_ids_.find(name);
    if (known != weight_ids_.end()) {
      ids_[node.results[0]] = known->second;
      return;
    }
    WeightData entry;
    entry.name = name;
    entry.type = node.results[0]->type;
    entry.bytes = storage_bytes(entry.type).constant().value();
    if (const auto source = source_ids_.find(name); source != source_ids_.end()) {
      entry.source = source->second;
      entry.data = engine_->sources[source->second].data;
    } else {
      entry.init_output = std::stoi(name.substr(kInitPrefix.size()));
    }
    ids_[node.results[0]] = weight_ids_[name] = add_entry(std::move(entry));
  }

  uint32_t add_entry(WeightData entry) {
    engine_->weights.push_back(std::move(entry));
    return static_cast<uint32_t>(engine_->weights.size() - 1);
  }

  // Model nodes that a step computes, fused ones included.
  void add_nodes(std::vector<ScheduledStep>& steps) {
    for (ScheduledStep& step : steps) {
      if (step.node->graphs.empty()) step.node_records.push_back(record(*step.node));
      for (const auto& body : step.node->graphs) {
        for (const auto& node : body->nodes()) step.node_records.push_back(record(*node));
      }
    }
  }

  uint32_t record(const Node& node) {
    engine_->nodes.push_back(
        {.name = node.name, .op = std::string(node.op->name), .source = node.source.to_string()});
    return static_cast<uint32_t>(engine_->nodes.size() - 1);
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
                          .literals = parts_.model.input_literals,
                          .output_literals = parts_.model.output_literals,
                          .mutated_inputs = {}};
    for (const aten::StateSource& state : parts_.model.states) {
      engine_->signature.mutated_inputs.push_back(state.mutated_input);
      engine_->state_values.push_back(state.initial ? to_dense(*state.initial) : Tensor{});
    }
  }

  void plan(BuildReport& report) {
    const Split& split = parts_.split;
    const SymbolValues typical = typical_sizes(split.main.symbols);
    PlanReport planned;
    engine_->init = plan_program({&split.init, std::move(parts_.lowered.init), ids_, {}});
    engine_->main = plan_program({&split.main, std::move(parts_.lowered.main), ids_, typical}, &planned);
    order_states();
    report.arena_bytes = planned.arena;
    report.arena_lower_bound = planned.lower_bound;
    report.kernels = engine_->init.steps.size() + engine_->main.steps.size();
    report.distinct_kernels = parts_.images.size();
  }

  // The program lists the states that it uses; the tables of values and bindings follow its order.
  void order_states() {
    std::vector<int32_t> bound;
    std::vector<Tensor> values;
    for (const Port& port : engine_->main.states) {
      const auto& states = parts_.model.states;
      const auto found = std::ranges::find(states, port.name, &aten::StateSource::name);
      invariant(found != states.end(), "a state of the program is not in the model: " + port.name);
      const size_t position = found - states.begin();
      bound.push_back(engine_->signature.mutated_inputs[position]);
      values.push_back(engine_->state_values[position]);
    }
    engine_->signature.mutated_inputs = std::move(bound);
    engine_->state_values = std::move(values);
  }

  BuildParts& parts_;
  std::shared_ptr<EngineData> engine_;
  std::map<std::string, int32_t> source_ids_;
  std::map<std::string, uint32_t> weight_ids_;
  std::map<const Value*, uint32_t> ids_;
};

}  // namespace

std::shared_ptr<EngineData> assemble(BuildParts parts, BuildReport& report) {
  return Assembly(parts).run(report);
}

}  // namespace ingot::core
