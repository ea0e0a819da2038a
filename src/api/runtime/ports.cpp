// SPDX-License-Identifier: Apache-2.0
// The interface of an engine: inputs, outputs, states, weights, and the model's signature.
#include "api/runtime/checks.h"
#include "api/runtime/guard.h"
#include "api/runtime/handles.h"
#include "engine/inspect.h"

using namespace ingot::core;

namespace {

constexpr size_t kFirstPort = offsetof(ingot_port, max) + sizeof(void*);

using Ports = std::vector<api::PortTexts>;

size_t count(const ingot_engine* engine, Ports ingot_engine::* ports) {
  return engine == nullptr ? 0 : (engine->*ports).size();
}

ingot_status* describe(const ingot_engine* engine, Ports ingot_engine::* ports, size_t index,
                       ingot_port* port, const char* what) {
  return api::guard([&] {
    api::require(engine, "engine");
    api::require_index(index, (engine->*ports).size(), what);
    const api::PortTexts& texts = (engine->*ports)[index];
    const ingot_port filled{.struct_size = 0,
                            .name = texts.name.c_str(),
                            .dtype = static_cast<int32_t>(texts.dtype),
                            .rank = static_cast<int32_t>(texts.dims.size()),
                            .dims = texts.dim_pointers.data(),
                            .min = texts.min.data(),
                            .max = texts.max.data()};
    api::write_struct(port, filled, kFirstPort, "ingot_port");
  });
}

ingot_status* find(const ingot_engine* engine, Ports ingot_engine::* ports, const char* name, size_t* index,
                   const char* what) {
  return api::guard([&] {
    api::require(engine, "engine");
    api::require(name, "name");
    api::require(index, "index");
    std::vector<std::string> names;
    for (const api::PortTexts& port : engine->*ports) names.push_back(port.name);
    *index = api::find_name(names, name, what);
  });
}

}  // namespace

extern "C" {

size_t ingot_engine_input_count(const ingot_engine* engine) { return count(engine, &ingot_engine::inputs); }
size_t ingot_engine_output_count(const ingot_engine* engine) { return count(engine, &ingot_engine::outputs); }
size_t ingot_engine_state_count(const ingot_engine* engine) { return count(engine, &ingot_engine::states); }

ingot_status* ingot_engine_input(const ingot_engine* engine, size_t index, ingot_port* port) {
  return describe(engine, &ingot_engine::inputs, index, port, "input");
}
ingot_status* ingot_engine_output(const ingot_engine* engine, size_t index, ingot_port* port) {
  return describe(engine, &ingot_engine::outputs, index, port, "output");
}
ingot_status* ingot_engine_state(const ingot_engine* engine, size_t index, ingot_port* port) {
  return describe(engine, &ingot_engine::states, index, port, "state");
}

ingot_status* ingot_engine_find_input(const ingot_engine* engine, const char* name, size_t* index) {
  return find(engine, &ingot_engine::inputs, name, index, "input");
}
ingot_status* ingot_engine_find_output(const ingot_engine* engine, const char* name, size_t* index) {
  return find(engine, &ingot_engine::outputs, name, index, "output");
}
ingot_status* ingot_engine_find_state(const ingot_engine* engine, const char* name, size_t* index) {
  return find(engine, &ingot_engine::states, name, index, "state");
}

size_t ingot_engine_metadata_count(const ingot_engine* engine) {
  return engine == nullptr ? 0 : engine->data->metadata.size();
}
const char* ingot_engine_metadata_key(const ingot_engine* engine, size_t index) {
  if (index >= ingot_engine_metadata_count(engine)) return nullptr;
  return std::next(engine->data->metadata.begin(), static_cast<ptrdiff_t>(index))->first.c_str();
}
const char* ingot_engine_metadata_value(const ingot_engine* engine, const char* key) {
  if (engine == nullptr || key == nullptr) return nullptr;
  const auto found = engine->data->metadata.find(key);
  return found == engine->data->metadata.end() ? nullptr : found->second.c_str();
}

int32_t ingot_engine_state_input(const ingot_engine* engine, size_t index) {
  if (engine == nullptr) return -1;
  const auto& bound = engine->data->signature.mutated_inputs;
  return index < bound.size() && bound[index] ? static_cast<int32_t>(*bound[index]) : -1;
}

int32_t ingot_engine_input_is_updated(const ingot_engine* engine, size_t index) {
  return engine != nullptr && index < engine->updated.size() && engine->updated[index] ? 1 : 0;
}

ingot_status* ingot_engine_signature(const ingot_engine* engine, ingot_text** json) {
  return api::guard([&] {
    api::require(engine, "engine");
    api::require(json, "json");
    *json = api::make_text(signature_json(*engine->data));
  });
}

}  // extern "C"
