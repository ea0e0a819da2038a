// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/engine_data.h"
#include "runtime/host.h"

namespace ingot::core {

// Runs init at build time, so that the engine ships prepared weights: fills the entries that init computes.
// Requires a processor that can run the engine's kernel binaries (UserError INGOT-U220 otherwise).
void prepare_weights(EngineData& data, Host& host, int gpu = 0);

// Whether this machine can run all kernel binaries of the engine, those for a GPU on GPU `gpu`.
bool can_run(const EngineData& data, const Host& host, int gpu = 0);

}  // namespace ingot::core
