// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "engine/engine_file.h"
#include "support/json_writer.h"

namespace ingot::core {

// The fields that identify a step's computation: name, kind, what runs it, backend, kernel or routine. Inside
// an object.
void write_step_fields(JsonWriter& json, const Program& program, const Step& step, const EngineData& engine);

// The content of an engine as JSON: format, target, key, sections, ports, steps, kernels, weights, memory
// plan and nodes. `file` is null for an engine that was not loaded from one.
std::string inspect_json(const EngineData& engine, const EngineFile* file);

// The calling convention of the model, as documented at the C API's ingot_engine_signature.
std::string signature_json(const EngineData& engine);

// The memory of a run at the typical sizes, in bytes: the arena and, for comparison, the maximum of live
// bytes (a lower bound of any plan) and the sum of all buffers without sharing.
struct MemorySummary {
  int64_t arena = 0, live = 0, buffers = 0;
};
MemorySummary memory_at_typical_sizes(const Program& program);

}  // namespace ingot::core
