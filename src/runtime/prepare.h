// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/engine_data.h"
#include "runtime/host.h"

namespace ingot::core {

// Runs init here, so that the engine ships prepared weights: fills the entries that init makes. Needs a
// processor that can run the engine's images (UserError INGOT-U220 otherwise).
void prepare_weights(EngineData& data, Host& host);

// Whether this machine can run all images of the engine.
bool can_run(const EngineData& data, const Host& host);

}  // namespace ingot::core
