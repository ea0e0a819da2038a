// SPDX-License-Identifier: Apache-2.0
#include "exporters/onnx/export_engine.h"

#include <algorithm>

#include <fmt/format.h>

#include "exporters/onnx/buffer_values.h"
#include "exporters/onnx/describe.h"
#include "support/hash.h"

namespace ingot::core::exported {
namespace {

std::string weight_name(const WeightData& weight, const Buffer& buffer) {
  if (const FromInit* init = weight.init()) return name_of_prepared(init->output);
  return weight.name.empty() ? buffer.name : weight.name;
}

std::span<const std::byte> weight_values(const WeightData& weight, const EngineData& engine) {
  if (weight.data != nullptr) return {weight.data.get(), weight.bytes};
  if (weight.source() == nullptr) return {};
  const SourceWeight& source = engine.sources[weight.source()->index];
  return source.data == nullptr ? std::span<const std::byte>{}
                                : std::span<const std::byte>{source.data.get(), source_bytes(source)};
}

std::string describe_node(const NodeRecord& node) {
  return fmt::format("{} ({}){}{}", node.op, node.name, node.source.empty() ? "" : "  ", node.source);
}

// One program and, as attributes, those nested in it.
class ProgramExport {
 public:
  ProgramExport(const EngineData& engine, const Program& program, UniqueNames& names)
      : engine_(engine), program_(program), names_(names), values_(program, names, graph_) {}

  OnnxGraph run() {
    graph_.name = program_.name;
    add_symbols(graph_.metadata, program_.symbols);
    for (const Port& input : program_.inputs) {
      graph_.inputs.push_back(value_of(names_.unused(input.name), input.type));
      values_.set(input.buffer, graph_.inputs.back().name);
    }
    for (const Port& output : program_.outputs) values_.prefer(output.buffer, output.name);
    for (BufferId id = 0; id < program_.buffers.size(); ++id) add_source(id);
    for (const Step& step : program_.steps) add_step(step);
    for (const auto& [buffer, name] : states_) add_update(buffer, name);
    for (const Port& output : program_.outputs) add_output(output);
    return std::move(graph_);
  }

 private:
  void add_source(BufferId id) {
    const Buffer& buffer = program_.buffers[id];
    if (const auto weight = buffer.weight()) {
      const WeightData& entry = engine_.weights[*weight];
      const std::string name = names_.unused(weight_name(entry, buffer));
      graph_.tensors.push_back(tensor_of(name, entry.type, weight_values(entry, engine_)));
      if (entry.init() != nullptr && has_no_values(graph_.tensors.back()))
        graph_.tensors.back().doc += "; prepared by init";
      values_.set(id, name);
    } else if (const auto* state = buffer.as<StateStorage>()) {
      const std::string& port = engine_.main.states[state->index].name;
      const std::string name = names_.unused(port);
      graph_.nodes.push_back(
          {.inputs = {}, .outputs = {name}, .name = name, .op = "state", .attributes = {{"name", port}}});
      graph_.values.push_back(value_of(name, buffer.type));
      values_.set(id, name);
      states_.emplace_back(id, name);
    }
  }

  void add_step(const Step& step) {
    OnnxNode node{.inputs = {}, .outputs = {}, .name = {}, .op = step.name};
    for (const BufferUse& use : step.uses) {
      if (use.buffer == kNoId || use.reads)
        node.inputs.push_back(use.buffer == kNoId ? "" : values_.read(use.buffer));
    }
    for (const BufferUse& use : step.uses) {
      if (use.buffer != kNoId && use.writes) node.outputs.push_back(values_.write(use.buffer));
    }
    describe(step, node);
    if (node.name.empty()) node.name = node.outputs.empty() ? step.name : node.outputs[0];
    graph_.nodes.push_back(std::move(node));
  }

  void describe(const Step& step, OnnxNode& node) {
    std::vector<std::string> operators;
    std::string names;
    for (const uint32_t id : step.nodes) {
      const NodeRecord& record = engine_.nodes[id];
      operators.push_back(describe_node(record));
      names += (names.empty() ? "" : ", ") + record.name;
      append_line(node.doc, record.source);
    }
    node.name = step.nodes.empty() ? "" : engine_.nodes[step.nodes[0]].name;
    if (!operators.empty()) node.attributes.push_back({"operators", std::move(operators)});
    add_action(step, node);
    if (step.operations != Dim(0)) node.attributes.push_back({"operations", step.operations.to_string()});
    if (step.bytes != Dim(0)) node.attributes.push_back({"bytes", step.bytes.to_string()});
    if (!names.empty()) node.metadata.emplace_back("nodes", names);
    if (!node.doc.empty()) node.metadata.emplace_back("source", node.doc);
    for (const SymbolBinding& binding : step.binds) node.metadata.emplace_back("binds", binding.symbol);
  }

  void add_action(const Step& step, OnnxNode& node) {
    constexpr const char* kKinds[] = {"kernel", "routine", "copy", "branch", "loop"};  // by Action
    node.attributes.push_back({"kind", std::string(kKinds[step.action.index()])});
    if (const auto* kernel = step.as<KernelStep>()) {
      const Image& image = engine_.images[kernel->launch.image];
      node.attributes.push_back({"kernel", image.kernel});
      node.attributes.push_back({"target", image.target});
    } else if (const auto* routine = step.as<RoutineStep>()) {
      node.attributes.push_back({"routine", routine->routine});
      for (const NamedValue& attribute : routine->attributes)
        node.attributes.push_back(attribute_of(attribute));
    } else if (const auto* branch = step.as<BranchStep>()) {
      add_nested("then", branch->then, node);
      add_nested("otherwise", branch->otherwise, node);
    } else if (const auto* loop = step.as<LoopStep>()) {
      add_nested("body", loop->body, node);
    }
  }

  void add_nested(const char* name, uint32_t index, OnnxNode& node) {
    const Program& nested = program_.nested[index];
    node.attributes.push_back(
        {name, std::make_shared<const OnnxGraph>(ProgramExport(engine_, nested, names_).run())});
  }

  void add_update(BufferId buffer, const std::string& first) {
    const std::string last = values_.read(buffer);
    if (last == first) return;
    graph_.nodes.push_back(
        {.inputs = {first, last}, .outputs = {}, .name = "update " + first, .op = "update"});
  }

  // An output of ONNX is the result of a node, and listed once: then it is no longer among the values.
  void add_output(const Port& output) {
    std::string name = values_.read(output.buffer);
    const auto own = std::ranges::find(graph_.values, name, &OnnxValue::name);
    if (own == graph_.values.end()) {
      const std::string copy = names_.unused(output.name);
      graph_.nodes.push_back({.inputs = {name}, .outputs = {copy}, .name = copy, .op = "output"});
      name = copy;
    } else {
      graph_.values.erase(own);
    }
    graph_.outputs.push_back(value_of(name, output.type));
    graph_.outputs.back().doc = output.name.empty() ? "" : "the result " + output.name;
  }

  const EngineData& engine_;
  const Program& program_;
  UniqueNames& names_;
  OnnxGraph graph_;
  BufferValues values_;
  std::vector<std::pair<BufferId, std::string>> states_;  // their first values
};

OnnxGraph program_graph(const EngineData& engine, const Program& program) {
  UniqueNames names;
  return ProgramExport(engine, program, names).run();
}

Metadata engine_metadata(const EngineData& engine) {
  Metadata metadata = {
      {"ingot", INGOT_VERSION},
      {"shows", "steps"},
      {"name", engine.name},
      {"origin", engine.origin},
      {"target", engine.target},
      {"steps", fmt::format("{} of main, {} of init", engine.main.steps.size(), engine.init.steps.size())},
      {"kernels", std::to_string(engine.images.size())},
      {"key_sha256", hex(digest(as_bytes(engine.key)))}};
  for (const auto& [key, value] : engine.metadata) metadata.emplace_back("metadata." + key, value);
  return metadata;
}

}  // namespace

OnnxModel export_engine(const EngineData& engine) {
  OnnxModel model;
  model.doc = doc_of_model("The steps that Ingot's engine '" + engine.name + "' runs");
  model.metadata = engine_metadata(engine);
  model.graph = program_graph(engine, engine.main);
  if (!engine.init.steps.empty()) add_init(model, program_graph(engine, engine.init));
  return model;
}

}  // namespace ingot::core::exported
