// SPDX-License-Identifier: Apache-2.0
#include "runtime/initialize.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/core.h>

#include "runtime/program_run.h"
#include "runtime/waits.h"
#include "runtime/weight_plan.h"
#include "support/error.h"

namespace ingot::core {
namespace {

void require_values(const EngineData& data, const Program& init, const WeightSet& weights) {
  for (const Buffer& buffer : init.buffers) {
    const auto id = buffer.weight();
    if (!id) continue;
    const WeightData& entry = data.weights[*id];
    if (weights.data[*id] != nullptr || entry.bytes == 0) continue;
    throw UserError(
        "INGOT-U322",
        fmt::format("the engine does not keep the model's weight '{}', and no new value was given",
                    entry.name),
        "pass values of all weights, or build with keep_original_weights=true");
  }
}

// Memory for the results of init, in the place that computes them.
struct InitOutputs {
  const Program& program;
  const LoadedBackends& backends;
  std::vector<std::shared_ptr<std::byte>> made;

  Place place(size_t index) const { return program.buffers[program.outputs[index].buffer].place; }
  static std::byte* allocate(void* context, size_t index, DType, std::span<const int64_t>, size_t bytes) {
    auto& own = *static_cast<InitOutputs*>(context);
    DeviceMemory* memory = own.backends.memories[place_number(own.place(index))];
    own.made[index] = memory != nullptr ? memory->allocate(bytes) : allocate_memory(bytes);
    return own.made[index].get();
  }
};

bool is_pinned(const WeightSet& weights, size_t id) {
  return !weights.pinned.empty() && weights.pinned[id] != nullptr;
}

// From the host or the device to pinned memory.
void pin_weight(WeightSet& weights, size_t id, std::shared_ptr<const std::byte>& on_device, size_t bytes,
                DeviceMemory& memory) {
  const std::byte* on_host = weights.data[id].get();
  if (weights.pinned[id] == nullptr && (on_host != nullptr || on_device != nullptr)) {
    const std::shared_ptr<std::byte> own = memory.allocate_pinned(bytes);
    if (on_host != nullptr)
      std::memcpy(own.get(), on_host, bytes);
    else
      memory.copy(own.get(), on_device.get(), bytes);
    weights.pinned[id] = own;
  }
  on_device = nullptr;
}

void place_weight(WeightSet& weights, size_t id, std::shared_ptr<const std::byte>& on_device, size_t bytes,
                  DeviceMemory& memory) {
  const std::byte* value = weights.data[id] != nullptr ? weights.data[id].get() : weights.pinned[id].get();
  if (on_device == nullptr && value != nullptr) {
    const std::shared_ptr<std::byte> own = memory.allocate(bytes);
    memory.copy(own.get(), value, bytes);
    on_device = own;
  }
  weights.pinned[id] = nullptr;
}

// For kernels of the host: a value that a device computed.
void place_weight_on_host(const EngineData& data, size_t id, const LoadedBackends& backends,
                          WeightSet& weights) {
  if (weights.data[id] != nullptr) return;
  if (weights.pinned[id] != nullptr) {
    weights.data[id] = weights.pinned[id];
    return;
  }
  for (size_t device = 0; device < weights.on_devices.size(); ++device) {
    const std::byte* made = weights.on_devices[device][id].get();
    if (made == nullptr) continue;
    const std::shared_ptr<std::byte> own = allocate_memory(data.weights[id].bytes);
    backends.memories[device + 1]->copy(own.get(), made, data.weights[id].bytes);
    weights.data[id] = own;
    return;
  }
}

// For a device, a value on the host is enough: it is copied when needed.
bool is_given(const EngineData& data, uint32_t id, Place place, const WeightSet& weights) {
  if (weights.data[id] != nullptr || is_pinned(weights, id)) return true;
  const bool placed = place.kind == Place::Kind::kDevice && weights.on_devices.size() == data.devices.size();
  return placed && weights.on_devices[place.index][id] != nullptr;
}

}  // namespace

bool has_value(const WeightSet& weights, size_t id) {
  return weights.data[id] != nullptr || is_pinned(weights, id) ||
         std::ranges::any_of(weights.on_devices, [&](const auto& copies) { return copies[id] != nullptr; });
}

std::optional<uint32_t> find_missing(const EngineData& data, const Program& program,
                                     const WeightSet& weights) {
  for (const Buffer& buffer : program.buffers) {
    const auto id = buffer.weight();
    if (id && !is_given(data, *id, buffer.place, weights) && data.weights[*id].bytes > 0) return id;
  }
  for (const Program& nested : program.nested) {
    if (const auto missing = find_missing(data, nested, weights)) return missing;
  }
  return std::nullopt;
}

std::shared_ptr<WeightSet> stored_weights(const EngineData& data) {
  auto weights = std::make_shared<WeightSet>();
  for (const SourceWeight& source : data.sources) weights->sources.push_back(source.data);
  for (const WeightData& entry : data.weights) weights->data.push_back(entry.data);
  weights->ranks = data.weights_ranks;
  apply_sources(data, *weights);
  return weights;
}

bool needs_init(const EngineData& data, const WeightSet& weights) {
  for (size_t id = 0; id < data.weights.size(); ++id) {
    if (data.weights[id].init() != nullptr && !has_value(weights, id) && data.weights[id].bytes > 0)
      return true;
  }
  return false;
}

void apply_sources(const EngineData& data, WeightSet& weights) {
  for (size_t id = 0; id < data.weights.size(); ++id) {
    const FromSource* source = data.weights[id].source();
    if (source != nullptr && weights.sources[source->index] != nullptr)
      weights.set(id, weights.sources[source->index]);
  }
}

void place_weight_set(const EngineData& data, const Program& program, const LoadedBackends& backends,
                      WeightSet& weights) {
  weights.on_devices.resize(data.devices.size());
  for (WeightPointers& copies : weights.on_devices) copies.resize(data.weights.size());
  weights.pinned.resize(data.weights.size());
  for (const Buffer& buffer : program.buffers) {
    const auto id = buffer.weight();
    if (!id) continue;
    if (buffer.place.kind == Place::Kind::kHost) {
      place_weight_on_host(data, *id, backends, weights);
      continue;
    }
    std::shared_ptr<const std::byte>& on_device = weights.on_devices[buffer.place.index][*id];
    DeviceMemory& memory = *backends.memories[place_number(buffer.place)];
    const bool streams = weights.plan != nullptr && !weights.plan->streamed.empty() &&
                         !weights.plan->stays(*id) && buffer.place.index == 0;
    const auto place = streams ? pin_weight : place_weight;
    place(weights, *id, on_device, data.weights[*id].bytes, memory);
  }
  for (const Program& nested : program.nested) place_weight_set(data, nested, backends, weights);
}

void move_weights(const EngineData& data, const LoadedBackends& from, const LoadedBackends& to,
                  WeightSet& weights) {
  for (size_t device = 0; device < weights.on_devices.size(); ++device) {
    DeviceMemory &old = *from.memories[device + 1], &own = *to.memories[device + 1];
    for (size_t id = 0; id < weights.data.size(); ++id) {
      std::shared_ptr<const std::byte>& value = weights.on_devices[device][id];
      if (value == nullptr) continue;
      const size_t bytes = data.weights[id].bytes;
      const std::shared_ptr<std::byte> staged = allocate_memory(bytes), moved = own.allocate(bytes);
      old.copy(staged.get(), value.get(), bytes);
      own.copy(moved.get(), staged.get(), bytes);
      value = moved;
    }
  }
}

void run_init(const EngineData& data, const Executable& init, std::span<const uint32_t> outputs,
              const LoadedBackends& backends, Host& host, WeightSet& weights) {
  const Program& program = *init.program;
  require_values(data, program, weights);
  const std::vector<WeightPointers> before = weights.on_devices;
  const WeightPointers pinned = weights.pinned;
  const auto main_plan = std::exchange(weights.plan, nullptr);
  place_weight_set(data, program, backends, weights);
  InitOutputs memory{program, backends, {}};
  memory.made.resize(program.outputs.size());
  std::vector<GrowingBlock> arenas;
  GrowingBlock working_memory;
  weights.generation = 1;  // of addresses in the plan below, which lives only during this call
  const std::vector<std::unique_ptr<Queue>> queues = open_queues(backends);
  const RunResources resources{.data = data,
                               .program = program,
                               .backends = backends,
                               .queues = queues,
                               .pool = host.pool(),
                               .weights = weights,
                               .inputs = {},
                               .states = {},
                               .states_version = 0,
                               .outputs = {&InitOutputs::allocate, &memory},
                               .arenas = arenas,
                               .working_memory = working_memory};
  RunPlan plan = make_run_plan(init, {}, std::vector<int64_t>(init.dims->table.symbols().size()));
  run_main(resources, init, plan);
  for (const auto& queue : queues) wait_for(data, program, *queue);
  weights.on_devices = before;  // values that only init reads do not stay on the device
  weights.on_devices.resize(data.devices.size(), WeightPointers(data.weights.size()));
  weights.pinned = pinned;
  weights.pinned.resize(data.weights.size());
  weights.plan = main_plan;
  for (size_t id = 0; id < data.weights.size(); ++id) {
    const FromInit* from = data.weights[id].init();
    if (from == nullptr) continue;
    const auto found = std::ranges::lower_bound(outputs, from->output);
    if (found == outputs.end() || *found != from->output) continue;
    const auto output = static_cast<size_t>(found - outputs.begin());
    weights.set(id, nullptr);
    weights.pinned[id] = nullptr;
    const Place place = memory.place(output);
    auto& pointers = place.kind == Place::Kind::kHost ? weights.data : weights.on_devices[place.index];
    pointers[id] = memory.made[output];
  }
}

}  // namespace ingot::core
