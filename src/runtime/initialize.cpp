// SPDX-License-Identifier: Apache-2.0
#include "runtime/initialize.h"

#include <algorithm>

#include <fmt/core.h>

#include "runtime/step_runner.h"
#include "support/error.h"

namespace ingot::core {
namespace {

void require_values(const EngineData& data, const Executable& init, const WeightSet& weights) {
  for (const Buffer& buffer : init.program->buffers) {
    if (buffer.storage != Storage::kWeight && buffer.storage != Storage::kConstant) continue;
    const WeightData& entry = data.weights[buffer.index];
    if (weights.data[buffer.index] != nullptr || entry.bytes == 0) continue;
    throw UserError(
        "INGOT-U322",
        fmt::format("the engine does not keep the model's weight '{}', and no value was given", entry.name),
        "give values of all weights, or build with keep_original_weights=true");
  }
}

}  // namespace

std::shared_ptr<WeightSet> stored_weights(const EngineData& data) {
  auto weights = std::make_shared<WeightSet>();
  for (const SourceWeight& source : data.sources) weights->sources.push_back(source.data);
  for (const WeightData& entry : data.weights) weights->data.push_back(entry.data);
  apply_sources(data, *weights);
  return weights;
}

bool needs_init(const EngineData& data, const WeightSet& weights) {
  for (size_t id = 0; id < data.weights.size(); ++id) {
    if (data.weights[id].init_output >= 0 && weights.data[id] == nullptr && data.weights[id].bytes > 0)
      return true;
  }
  return false;
}

void apply_sources(const EngineData& data, WeightSet& weights) {
  for (size_t id = 0; id < data.weights.size(); ++id) {
    const int32_t source = data.weights[id].source;
    if (source >= 0 && weights.sources[static_cast<size_t>(source)] != nullptr) {
      weights.data[id] = weights.sources[static_cast<size_t>(source)];
    }
  }
}

void run_init(const EngineData& data, const Executable& init, Host& host, WeightSet& weights) {
  require_values(data, init, weights);
  std::vector<std::shared_ptr<std::byte>> outputs(init.program->outputs.size());
  const auto allocate = [](void* context, size_t index, DType, std::span<const int64_t>, size_t bytes) {
    auto& made = *static_cast<std::vector<std::shared_ptr<std::byte>>*>(context);
    made[index] = allocate_memory(bytes);
    return made[index].get();
  };
  std::vector<GrowingBlock> arenas;
  GrowingBlock scratch;
  std::vector<void*> arguments(init.most_arguments);
  weights.generation = 1;  // of addresses in the plan below, which dies with this call
  const RunResources resources{.data = data,
                               .pool = host.pool(),
                               .weights = weights,
                               .inputs = {},
                               .states = {},
                               .states_version = 0,
                               .outputs = {allocate, &outputs},
                               .arenas = arenas,
                               .scratch = scratch,
                               .arguments = arguments};
  RunPlan plan = make_run_plan(init, {}, std::vector<int64_t>(init.dims->table.symbols().size()));
  StepRunner(resources, plan).run(init);
  for (size_t id = 0; id < data.weights.size(); ++id) {
    const int32_t output = data.weights[id].init_output;
    if (output >= 0) weights.data[id] = outputs[static_cast<size_t>(output)];
  }
}

}  // namespace ingot::core
