// SPDX-License-Identifier: Apache-2.0
#include "engine/inspect.h"

#include "api/runtime/checks.h"
#include "api/runtime/guard.h"
#include "api/runtime/handles.h"
#include "runtime/snapshot.h"
#include "support/paths.h"

using namespace ingot::core;

extern "C" {

ingot_status* ingot_engine_inspect(const ingot_engine* engine, ingot_text** json) {
  return api::guard([&] {
    api::require(engine, "engine");
    api::require(json, "json");
    const auto data = engine->engine == nullptr ? engine->data : current_data(engine->engine);
    // A refitted engine differs from its file.
    const bool is_file = engine->engine != nullptr && data.get() == engine->data.get();
    const auto file = is_file ? engine->engine->file() : nullptr;
    *json = api::make_text(inspect_json(*data, file.get()));
  });
}

ingot_status* ingot_inspect_file(const char* path, ingot_text** json) {
  return api::guard([&] {
    api::require(path, "path");
    api::require(json, "json");
    const auto file = open_copy(to_path(path));
    *json = api::make_text(inspect_json(file->data(), file.get()));
  });
}

}  // extern "C"
