// SPDX-License-Identifier: Apache-2.0
#include "tests/random/check.h"

#include <fmt/format.h>

#include "backends/cpu/compile/backend.h"
#include "backends/fake/compile/backend.h"
#include "compiler/compile.h"
#include "ops/model_source.h"
#include "ops/ops.h"
#include "runtime/context.h"
#include "support/error.h"
#include "support/hash.h"

namespace ingot::core::random_graphs {
namespace {

aten::Imported model_of(const Case& test) {
  aten::Imported model{test.graph.clone(), {}, {}, {}, {}};
  for (const auto& node : model.graph.nodes()) {
    if (!node->op->traits.has(Trait::kSource) || node->literal != nullptr) continue;
    auto source = node->attributes<ops::ModelSource>();
    const std::string name = source.name;
    const bool is_state = node->op == &ops::state;
    source.source = static_cast<int64_t>(is_state ? model.states.size() : model.weights.size());
    node->values = to_values(source);
    const Tensor& value = test.sources.at(name);
    if (is_state) {
      model.states.push_back({.name = name, .initial = OwnedView{value.view(), value.data}});
    } else {
      model.weights.push_back({.name = name, .value = {value.view(), value.data}});
    }
  }
  model.input_slots.resize(model.graph.inputs().size());
  model.output_slots.resize(model.graph.outputs.size());
  return model;
}

// By the names of values, which stay while a case shrinks.
void divide(Graph& graph, uint64_t cut) {
  constexpr Side kSides[] = {Side::kHost, Side::kDevice, Side::kAny};
  for (const auto& node : graph.nodes()) {
    if (node->op->traits.has(Trait::kSource) || node->results.empty()) continue;
    const std::string text = fmt::format("{} {}", cut, node->results[0]->name);
    node->side = kSides[std::to_integer<size_t>(digest(as_bytes(text))[0]) % 3];
  }
}

aten::Imported model_of(const Case& test, const Build& build) {
  aten::Imported model = model_of(test);
  if (build.cut != 0) divide(model.graph, build.cut);
  return model;
}

// Levels often compile the same kernels: those of one case are shared, also over its builds.
constexpr size_t kCacheBytes = 64 << 20;

const Backend& backend_of(const Build& build) {
  if (build.backend == "cpu") return cpu::backend();
  invariant(build.backend == "fake", "there is no such backend here");
  return fake::backend();
}

std::shared_ptr<EngineData> compile_case(const Case& test, const Build& build, Cache& kernels) {
  const bool is_cpu = build.backend == "cpu";
  CompileOptions options;
  options.target.backend = build.backend;
  options.target.device = is_cpu ? to_string(build.features) : fake::backend().device("");
  options.target.level = options.passes.level = build.level;
  options.passes.strict = test.strict;
  options.target.numerics = test.strict ? Target::Numerics::kStrict : Target::Numerics::kDefault;
  std::vector<const Backend*> backends = {&backend_of(build)};
  if (build.cut != 0) {
    backends.push_back(&backend_of({}));
    options.target.host_device = to_string(host_cpu_features());
  }
  CompileHooks hooks;
  hooks.cache = &kernels;
  return compile_model({}, [&] { return model_of(test, build); }, options, backends, hooks);
}

OutputAllocator allocator_of(std::vector<Tensor>& outputs) {
  const auto allocate = [](void* context, size_t index, DType dtype, std::span<const int64_t> shape,
                           size_t) -> void* {
    auto& own = *static_cast<std::vector<Tensor>*>(context);
    own.at(index) = make_tensor(dtype, {shape.begin(), shape.end()});
    return own[index].data.get();
  };
  return {allocate, &outputs};
}

// `memory`: of the device that it is copied to; null: the host.
Tensor copy_to(DeviceMemory* memory, const Tensor& tensor) {
  if (memory == nullptr) return to_dense(tensor.view());
  Tensor copy{memory->allocate(tensor.bytes()), tensor.dtype, tensor.shape};
  memory->copy(copy.data.get(), tensor.data.get(), tensor.bytes());
  return copy;
}
Tensor copy_from(DeviceMemory* memory, const Tensor& tensor) {
  if (memory == nullptr) return to_dense(tensor.view());
  Tensor copy = make_tensor(tensor.dtype, tensor.shape);
  memory->copy(copy.data.get(), tensor.data.get(), tensor.bytes());
  return copy;
}

// The states are given back with the outputs.
Trajectory run_compiled(const Case& test, const Build& build, Host& host, Cache& kernels) {
  Context context(Engine::create(compile_case(test, build, kernels), host));
  DeviceMemory* const memory = host.find_executor(build.backend)->memory();
  std::map<std::string, Tensor> states;
  const auto& ports = context.engine().data().main.states;
  for (size_t i = 0; i < ports.size(); ++i) {
    const Tensor& state = states[ports[i].name] = copy_to(memory, test.sources.at(ports[i].name));
    context.bind_state(i, state.data.get());
  }
  Trajectory trajectory;
  for (const auto& inputs : test.runs) {
    std::vector<Argument> arguments;
    for (const Tensor& input : inputs) {
      arguments.push_back({input.data.get(), input.dtype, static_cast<int32_t>(input.shape.size()),
                           input.shape.data(), nullptr});
    }
    Evaluation& evaluation = trajectory.emplace_back();
    evaluation.outputs.resize(test.graph.outputs.size());
    context.run(arguments, allocator_of(evaluation.outputs));
    for (const auto& [name, value] : states) evaluation.updates.emplace(name, copy_from(memory, value));
  }
  return trajectory;
}

}  // namespace

std::vector<Build> all_builds() {
  std::vector<Build> builds;
  for (const char* name : {"x86-64-v3", "x86-64-v4"}) {
    const CpuFeatures features = parse_cpu_features(name);
    if (!host_cpu_features().covers(features)) continue;
    for (int level = 0; level <= 3; ++level) builds.push_back({level, features});
  }
  return builds;
}

std::vector<Build> device_builds() {
  std::vector<Build> builds;
  for (int level = 0; level <= 3; ++level) builds.push_back({level, {}, "fake"});
  return builds;
}

std::vector<Build> divided_builds(uint64_t cut) {
  std::vector<Build> builds;
  for (int level = 0; level <= 3; ++level) builds.push_back({level, {}, "fake", cut});
  return builds;
}

// Two halves that tie in one rounding of many decide an argmax: little noise may miss it.
constexpr int kMoreRounds = 24;

Failure check(const Case& test, std::span<const Build> builds, Host& host) {
  std::optional<Reference> reference;
  try {
    reference = make_reference(test);
  } catch (const UserError&) {
    return {};  // an index out of range, or the like: no compiled code has to give anything
  } catch (const UnsupportedError&) {
    return {};
  } catch (const std::exception& error) {
    return {builds[0], fmt::format("the interpreter: {}", error.what())};
  }
  const bool is_refused = breaks_bounds(test);
  Cache kernels(kCacheBytes);
  for (const Build& build : builds) {
    try {
      const Trajectory results = run_compiled(test, build, host, kernels);
      if (is_refused) return {build, "sizes that an operator refuses were run"};
      const std::string problem = difference(*reference, results);
      if (!problem.empty() && !difference(make_reference(test, kMoreRounds), results).empty())
        return {build, problem};
    } catch (const UnsupportedError&) {
    } catch (const UserError& error) {
      if (!is_refused || error.details().code != "INGOT-U312") return {build, error.what()};
    } catch (const std::exception& error) {
      return {build, error.what()};
    }
  }
  return {};
}

}  // namespace ingot::core::random_graphs
