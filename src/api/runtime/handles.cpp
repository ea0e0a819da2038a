// SPDX-License-Identifier: Apache-2.0
#include "api/runtime/handles.h"

#include <set>

#include <fmt/core.h>

#include "api/runtime/host_access.h"
#include "engine/group_uses.h"
#include "support/error.h"
#include "support/paths.h"

namespace ingot::core::api {
namespace {

std::vector<PortTexts> texts_of(const std::vector<Port>& ports, const SymbolTable& symbols) {
  std::vector<PortTexts> texts;
  for (const Port& port : ports) texts.emplace_back(port, symbols);
  return texts;
}

std::vector<PortTexts> argument_texts(const EngineData& data) {
  std::vector<PortTexts> texts;
  for (const ArgumentSlot& slot : argument_slots(data)) texts.emplace_back(*slot.port, data.main.symbols);
  return texts;
}

}  // namespace

PortTexts::PortTexts(const Port& port, const SymbolTable& symbols) : name(port.name) {
  const TensorType type = type_for_callers(port);
  dtype = type.dtype;
  dims.reserve(type.rank());  // pointers to elements, taken below, stay valid
  for (const Dim& dim : type.shape) {
    const DimRange range = range_of(dim, symbols);
    dim_pointers.push_back(dims.emplace_back(dim.to_string()).c_str());
    min.push_back(range.min);
    max.push_back(range.max);
  }
}

const std::shared_ptr<Engine>& runnable(const ingot_engine& handle) {
  if (handle.engine == nullptr) [[unlikely]]
    Engine::create(handle.data, host());  // throws if this machine cannot run it
  return handle.engine;
}

size_t held_bytes(const Engine& engine) {
  std::set<std::pair<size_t, const std::byte*>> counted;  // copies share what no refit has changed
  size_t bytes = 0;
  for (const auto& weights : engine.weights_of_runs()) {
    for (size_t id = 0; id < weights->data.size(); ++id) {
      const std::byte* const data = weights->data[id].get();
      if (data != nullptr && counted.emplace(id, data).second) bytes += engine.data().weights[id].bytes;
    }
  }
  return bytes;
}

void require_unchanged_model(const ingot_engine& handle) {
  for (const auto& each : handle.model) {
    const auto file = each.lock();
    if (file == nullptr || file->version() == file->opened_version()) continue;
    throw UserError(
        "INGOT-U211",
        fmt::format("the file '{}' changed after an engine was built from it", to_text(file->path())),
        "rebuild the engine");
  }
}

}  // namespace ingot::core::api

using namespace ingot::core;

ingot_engine::ingot_engine(std::shared_ptr<const EngineData> content)
    : data(std::move(content)),
      inputs(api::argument_texts(*data)),
      outputs(api::texts_of(data->main.outputs, data->main.symbols)),
      states(api::texts_of(data->main.states, data->main.symbols)) {
  for (const ArgumentSlot& slot : argument_slots(*data)) updated.push_back(slot.is_state);
  for (const GroupUse& use : groups_of(*data)) groups.push_back(use.name);
}

ingot_context::ingot_context(std::shared_ptr<Engine> engine, const ContextOptions& options)
    : context(std::move(engine), options), counters(context.counters()) {
  for (const ArgumentSlot& slot : argument_slots(context.engine().data())) inputs.push_back(slot.port->name);
}

ingot_engine::ingot_engine(std::shared_ptr<Engine> loaded)
    : ingot_engine(std::shared_ptr<const EngineData>(loaded, &loaded->data())) {
  engine = std::move(loaded);
}
