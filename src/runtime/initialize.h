// SPDX-License-Identifier: Apache-2.0
// The init program: what turns a model's weights into what the main program reads.
#pragma once

#include <memory>

#include "runtime/executable.h"
#include "runtime/host.h"
#include "runtime/weight_set.h"

namespace ingot::core {

// Weights as `data` holds them, with the values of its sources.
std::shared_ptr<WeightSet> stored_weights(const EngineData& data);

// True if init still has to run: something that it makes has no value.
bool needs_init(const EngineData& data, const WeightSet& weights);

// Points entries that are sources at `weights.sources`, where those have a value.
void apply_sources(const EngineData& data, WeightSet& weights);

// Copies the weights that `program` reads on devices, and that are not there yet.
void place_weights_on_devices(const EngineData& data, const Program& program, const LoadedBackends& backends,
                              WeightSet& weights);

// Runs init on `weights` and stores what it makes there, in the place where it was made. UserError INGOT-U322
// if something that init reads has no value.
void run_init(const EngineData& data, const Executable& init, const LoadedBackends& backends, Host& host,
              WeightSet& weights);

}  // namespace ingot::core
