// SPDX-License-Identifier: Apache-2.0
// A graph that is planned and run by the real runtime, each step by the interpreter, in the buffers of the
// plan.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "backends/null/compile/backend.h"
#include "backends/steps/members.h"
#include "evaluate/evaluate.h"
#include "ir/text.h"
#include "loops/interpreter.h"
#include "ops/alias.h"
#include "ops/model_source.h"
#include "ops/ops.h"
#include "plan/plan.h"
#include "tests/runtime/fixtures.h"

namespace ingot::core::testing {

class PlannedGraph {
 public:
  PlannedGraph(const std::string& text, SymbolValues typical) : graph_(parse_graph(text, ops::find_op)) {
    PlanInput input{.graph = &graph_, .typical = std::move(typical)};
    for (const auto& node : graph_.nodes()) add(*node, input);
    data_->main = plan_program(input, &report);
    data_->init.name = "init";
    data_->target = "null";
    validate(data_->main, data_->images.size(), data_->weights.size());
    executor_ = std::make_unique<TestExecutor>(std::move(kernels_));
    executors_[0] = executor_.get();
    host_ = std::make_unique<Host>(HostOptions{.threads = 1}, executors_);
    context_ = std::make_unique<Context>(Engine::create(data_, *host_));
  }

  const Program& program() const { return data_->main; }
  const Buffer& buffer(std::string_view name) const {
    for (const Buffer& buffer : program().buffers) {
      if (buffer.name == name) return buffer;
    }
    throw std::out_of_range(std::string(name));
  }
  // The buffer whose memory the value of this name shares.
  const Buffer& memory(std::string_view name) const {
    return program()
        .buffers[root_buffer(program(), static_cast<BufferId>(&buffer(name) - program().buffers.data()))];
  }
  // The memory that the step of this name writes.
  const Buffer& result_of(std::string_view step) const {
    for (const Step& each : program().steps) {
      if (each.name == step) return program().buffers[root_buffer(program(), each.uses.back().buffer)];
    }
    throw std::out_of_range(std::string(step));
  }
  size_t copies() const {
    const auto is_copy = [](const Step& step) { return step.as<CopyStep>() != nullptr; };
    return static_cast<size_t>(std::ranges::count_if(program().steps, is_copy));
  }

  // Outputs, and states after the run, of the plan and of the evaluator.
  struct Results {
    std::vector<Tensor> outputs;
    TensorMap states;
  };
  Results run(const std::vector<Tensor>& inputs, const TensorMap& states) {
    std::vector<Argument> arguments;
    for (const Tensor& tensor : inputs) arguments.push_back(argument(tensor));
    Results results;
    for (size_t i = 0; i < program().states.size(); ++i) {
      const std::string& name = program().states[i].name;
      results.states[name] = to_dense(states.at(name).view());
      context_->bind_state(i, results.states[name].data.get());
    }
    Outputs outputs;
    context_->run(arguments, outputs.allocator());
    results.outputs = std::move(outputs.tensors);
    return results;
  }
  Results expected(const std::vector<Tensor>& inputs, const TensorMap& states) const {
    TensorMap values = states;
    values.insert(weights_.begin(), weights_.end());
    Evaluation evaluation = evaluate(graph_, inputs, values);
    return {std::move(evaluation.outputs), std::move(evaluation.updates)};
  }

  PlanReport report;

 private:
  void add(const Node& node, PlanInput& input) {
    if (node.op == &ops::state) {
      const TensorType& type = node.results[0]->type;
      std::vector<int64_t> shape;
      for (const Dim& dim : type.shape) shape.push_back(dim.constant().value());
      data_->state_values.push_back(make_tensor(type.dtype, shape));
    } else if (node.op->traits.has(Trait::kSource)) {
      add_weight(node, input);
    } else if (!alias_offset(node)) {
      add_step(node, input);
    }
  }

  void add_weight(const Node& node, PlanInput& input) {
    const TensorType& type = node.results[0]->type;
    Tensor value;
    if (node.literal != nullptr) {
      value = *node.literal;
    } else {
      std::vector<int64_t> shape;
      for (const Dim& dim : type.shape) shape.push_back(dim.constant().value());
      value = filled(shape, 0.5F, 0.125F);
      weights_[node.attributes<ops::ModelSource>().name] = value;
    }
    input.weights.emplace(node.results[0], static_cast<uint32_t>(data_->weights.size()));
    WeightData weight{.name = node.results[0]->name, .type = type, .data = value.data};
    weight.bytes = value.bytes();
    if (node.literal == nullptr) {
      weight.origin = FromSource{static_cast<uint32_t>(data_->sources.size())};
      data_->sources.push_back(
          {.name = weight.name, .dtype = value.dtype, .shape = value.shape, .data = value.data});
    }
    data_->weights.push_back(std::move(weight));
  }

  void add_step(const Node& node, PlanInput& input) {
    LoweredStep step = null::backend().lower(node, graph_.symbols, {})[0];
    loops::Kernel loops = node.op->lower != nullptr ? node.op->lower(node) : loops::Kernel{};
    if (node.op->traits.has(Trait::kFused)) {
      const Members members = members_of(node);
      RegionKernel region = compose_members(members, {});
      step.arguments.clear(), step.writes.clear();
      for (const Value* value : region.buffers) add_argument(step, members, value);
      loops = std::move(region.kernel);
    }
    if (LoweredKernel* kernel = step.kernel()) {
      for (const std::string& name : graph_symbols()) kernel->launch.symbols.push_back(Dim::symbol(name));
      kernel->launch.image = static_cast<ImageId>(data_->images.size());
      data_->images.push_back(kernel->compile());
      kernels_.push_back(interpreted(std::move(loops)));
    }
    input.steps.push_back({.node = &node, .step = std::move(step), .node_records = {}, .backend = "null"});
  }

  std::vector<std::string> graph_symbols() const {
    std::vector<std::string> names;
    for (const auto& [name, info] : graph_.symbols) names.push_back(name);
    return names;
  }

  TestKernel interpreted(loops::Kernel kernel) const {
    return [kernel = std::move(kernel), symbols = graph_symbols()](const KernelCall& call) {
      SymbolValues values;
      for (size_t i = 0; i < symbols.size(); ++i) values[symbols[i]] = call.symbols[i];
      std::vector<TensorView> views;
      for (size_t i = 0; i < kernel.buffers.size(); ++i) {
        std::vector<int64_t> shape;
        for (const Dim& dim : kernel.buffers[i].type.shape) shape.push_back(core::evaluate(dim, values));
        const std::vector<int64_t> strides = row_major_strides(shape);
        views.push_back(
            {static_cast<std::byte*>(call.buffers[i]), kernel.buffers[i].type.dtype, shape, strides});
      }
      return static_cast<int64_t>(loops::interpret(kernel, views, values));
    };
  }

  Graph graph_;
  std::shared_ptr<EngineData> data_ = std::make_shared<EngineData>();
  TensorMap weights_;
  std::vector<TestKernel> kernels_;
  std::unique_ptr<TestExecutor> executor_;
  const Executor* executors_[1] = {};
  std::unique_ptr<Host> host_;
  std::unique_ptr<Context> context_;
};

inline bool equal(const Tensor& a, const Tensor& b) {
  return a.shape == b.shape && (a.bytes() == 0 || std::memcmp(a.data.get(), b.data.get(), a.bytes()) == 0);
}

}  // namespace ingot::core::testing
