// SPDX-License-Identifier: Apache-2.0
// The init program: turns a model's weights into those that the main program reads.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "runtime/executable.h"
#include "runtime/host.h"
#include "runtime/weight_set.h"

namespace ingot::core {

// Weights as `data` holds them, with the values of its sources.
std::shared_ptr<WeightSet> stored_weights(const EngineData& data);

// Whether init still has to run: one of its results has no value.
bool needs_init(const EngineData& data, const WeightSet& weights);

// Points entries that are sources at `weights.sources`, if those have values.
void apply_sources(const EngineData& data, WeightSet& weights);

// Copies the weights that `program` reads on devices, or on the host, and that are not yet there; those that
// `weights.plan` streams to pinned memory, and then they are on no device.
void place_weight_set(const EngineData& data, const Program& program, const LoadedBackends& backends,
                      WeightSet& weights);

// Weights that are on devices of `from` are on those of `to` instead.
void move_weights(const EngineData& data, const LoadedBackends& from, const LoadedBackends& to,
                  WeightSet& weights);

// The first weight id without value that `program` reads.
std::optional<uint32_t> find_missing(const EngineData& data, const Program& program,
                                     const WeightSet& weights);
// On the host, where queues copy from or not, or a device.
bool has_value(const WeightSet& weights, size_t id);

// Runs init, or a part of it whose output k is output outputs[k] of init (ascending), on `weights` and stores
// its results there, each in the place that computed it. UserError INGOT-U322 if a value that it reads is
// missing.
void run_init(const EngineData& data, const Executable& init, std::span<const uint32_t> outputs,
              const LoadedBackends& backends, Host& host, WeightSet& weights);

}  // namespace ingot::core
