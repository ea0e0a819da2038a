// SPDX-License-Identifier: Apache-2.0
#include "compiler/engine_names.h"

#include <fmt/core.h>

#include <unordered_set>

#include "compiler/other_tensors.h"
#include "compiler/output_names.h"
#include "support/error.h"

namespace ingot::core {
namespace {

// Names of values that passes made: none is that of a value of the model, so that names tell values.
class UniqueNames {
 public:
  explicit UniqueNames(const ModelNames& names) : names_(names) {}

  std::string of(const NameOrigin& origin) {
    switch (origin.kind) {
      case NameOrigin::Kind::kNone:
        return {};
      case NameOrigin::Kind::kValue:
        return names_.values().at(origin.index);
      case NameOrigin::Kind::kCall:
        return unused(names_.calls().at(origin.index).name);
      case NameOrigin::Kind::kOp:
        return unused(origin.op);
    }
    return {};
  }

 private:
  std::string unused(const std::string& base) {
    for (int& count = tried_[base];; ++count) {
      std::string name = count == 0 ? base : fmt::format("{}_{}", base, count);
      if (!names_.find_value(name) && taken_.insert(name).second) return name;
    }
  }

  const ModelNames& names_;
  std::unordered_map<std::string, int> tried_;
  std::unordered_set<std::string> taken_;
};

class EngineBinding {
 public:
  EngineBinding(EngineData& engine, const EngineOrigins& origins, const NamedModel& bound)
      : engine_(engine), origins_(origins), bound_(bound) {}

  void run() {
    bind_model();
    bind_sources();
    bind_weights();
    bind_states();
    for (size_t i = 0; i < engine_.nodes.size(); ++i) {
      const ModelCall& call = bound_.names.calls().at(origins_.nodes.at(i));
      engine_.nodes[i].name = call.name;
      engine_.nodes[i].source = call.source;
    }
    bind_buffers(engine_.init, origins_.init);
    bind_buffers(engine_.main, origins_.main);
    bind_ports();
  }

 private:
  void bind_model() {
    const aten::Program& program = bound_.program;
    const std::string& graph = bound_.names.graph();
    engine_.name = program.argument_names.empty() ? "model" : graph;
    engine_.main.name = graph;
    engine_.origin = program.origin;
    engine_.checks = bound_.model.checks;
    engine_.signature = {.argument_names = program.argument_names,
                         .input_tree = program.input_tree,
                         .output_tree = program.output_tree,
                         .inputs = bound_.model.input_slots,
                         .outputs = bound_.model.output_slots,
                         .mutated_inputs = {}};
  }

  size_t model_index(uint32_t source) const {
    return static_cast<size_t>(bound_.names.sources().at(source).second);
  }

  void bind_sources() {
    for (size_t i = 0; i < engine_.sources.size(); ++i) {
      SourceWeight& source = engine_.sources[i];
      const aten::WeightSource& weight = bound_.model.weights.at(model_index(origins_.sources.at(i)));
      const Tensor dense = dense_values(weight);
      invariant(dense.dtype == source.dtype && dense.shape == source.shape,
                "models of equal structure have weights of other types");
      source.name = weight.name;
      source.is_saved = weight.is_saved;
      source.data = dense.data;
    }
    engine_.others = other_tensors(bound_.program, bound_.model, engine_.sources);
  }

  void bind_weights() {
    UniqueNames unique(bound_.names);
    for (size_t i = 0; i < engine_.weights.size(); ++i) {
      WeightData& weight = engine_.weights[i];
      if (const FromSource* from = weight.source()) {
        weight.name = engine_.sources[from->index].name;
        weight.data = engine_.sources[from->index].data;
      } else if (weight.is_constant()) {
        weight.name = unique.of(origins_.weights.at(i));
      }
    }
  }

  void bind_states() {
    engine_.state_values.clear();
    for (size_t i = 0; i < engine_.main.states.size(); ++i) {
      const aten::StateSource& state = bound_.model.states.at(model_index(origins_.states.at(i)));
      engine_.main.states[i].name = state.name;
      engine_.main.states[i].is_complex = state.is_complex;
      engine_.signature.mutated_inputs.push_back(state.mutated_input);
      engine_.state_values.push_back(state.initial ? to_dense(state.initial->view) : Tensor{});
    }
  }

  void bind_buffers(Program& program, const std::vector<NameOrigin>& origins) {
    UniqueNames unique(bound_.names);
    for (size_t i = 0; i < program.buffers.size(); ++i) program.buffers[i].name = unique.of(origins.at(i));
  }

  void bind_ports() {
    for (size_t i = 0; i < engine_.main.inputs.size(); ++i) {
      engine_.main.inputs[i].name = bound_.names.values().at(i);
      engine_.main.inputs[i].is_complex = bound_.model.complex_inputs.contains(i);
    }
    const std::vector<std::string> outputs = output_names(bound_.program, bound_.model);
    invariant(outputs.size() == engine_.main.outputs.size(),
              "the program's outputs do not match the model's");
    for (size_t i = 0; i < outputs.size(); ++i) {
      engine_.main.outputs[i].name = outputs[i];
      engine_.main.outputs[i].is_complex = bound_.model.complex_outputs.contains(i);
    }
    for (size_t i = 0; i < engine_.init.outputs.size(); ++i)
      engine_.init.outputs[i].name = fmt::format("init.{}", i);
  }

  EngineData& engine_;
  const EngineOrigins& origins_;
  const NamedModel& bound_;
};

}  // namespace

uint32_t call_of(const Node& node, const ModelNames& names) {
  const std::optional<uint32_t> call = names.find_call(node.name, node.source.to_string());
  invariant(call.has_value(), fmt::format("no call of the model is called {}", node.name));
  return *call;
}

NameOrigin origin_of(const Value& value, const ModelNames& names) {
  if (const auto own = names.find_value(value.name)) return {NameOrigin::Kind::kValue, *own, {}};
  const Node* producer = value.producer;
  if (producer == nullptr) return {NameOrigin::Kind::kOp, 0, "value"};
  if (!producer->name.empty()) return {NameOrigin::Kind::kCall, call_of(*producer, names), {}};
  return {NameOrigin::Kind::kOp, 0, std::string(producer->op->name)};
}

std::vector<NameOrigin> origins_of_buffers(const Program& program, const Graph& graph,
                                           const ModelNames& names) {
  std::unordered_map<std::string_view, const Value*> values;
  for (const Value* input : graph.inputs()) values.emplace(input->name, input);
  for (const auto& node : graph.nodes()) {
    for (const Value* result : node->results) values.emplace(result->name, result);
  }
  std::vector<NameOrigin> origins;
  for (const Buffer& buffer : program.buffers) {
    const auto value = values.find(buffer.name);
    origins.push_back(value == values.end() ? NameOrigin{} : origin_of(*value->second, names));
  }
  return origins;
}

void bind_engine(EngineData& engine, const EngineOrigins& origins, const NamedModel& model) {
  EngineBinding(engine, origins, model).run();
}

Tensor dense_values(const aten::WeightSource& weight) {
  const TensorView& view = weight.value.view;
  if (!is_dense(view)) return to_dense(view);
  return {std::shared_ptr<std::byte>(std::const_pointer_cast<void>(weight.value.owner), view.data),
          view.dtype, view.shape};
}

}  // namespace ingot::core
