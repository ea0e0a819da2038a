// SPDX-License-Identifier: Apache-2.0
// EngineOrigins as part of an entry of a cache.
#pragma once

#include "compiler/byte_parts.h"
#include "compiler/engine_names.h"

namespace ingot::core {

void write_origins(ByteWriter& writer, const EngineOrigins& origins);
EngineOrigins read_origins(ByteReader& reader);  // empty beyond what `reader` has
// Whether the engine can be bound to the model: everything has an origin, which the model has.
bool fit(const EngineOrigins& origins, const EngineData& engine, const NamedModel& model);

}  // namespace ingot::core
