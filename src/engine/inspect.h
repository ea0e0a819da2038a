// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "engine/engine_file.h"
#include "support/json_writer.h"

namespace ingot::core {

// The fields that say what computes a step: name, kind, backend, kernel or routine. Inside an object.
void write_step_fields(JsonWriter& json, const Step& step, const EngineData& engine);

// What an engine holds, as JSON: format, target, key, sections, ports, steps, kernels, weights, memory plan
// and nodes. `file` is null for an engine that was not loaded from one.
std::string inspect_json(const EngineData& engine, const EngineFile* file);

// How the model was called, as the C API's ingot_engine_signature describes.
std::string signature_json(const EngineData& engine);

// What a run takes at the typical sizes, in bytes: the arena, and for comparison what is alive at once at
// most (no plan takes less) and all buffers without sharing.
struct MemorySummary {
  int64_t arena = 0, live = 0, buffers = 0;
};
MemorySummary memory_at_typical_sizes(const Program& program);

}  // namespace ingot::core
