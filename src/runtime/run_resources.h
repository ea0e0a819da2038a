// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "routines/communicator.h"
#include "runtime/loaded_backends.h"
#include "runtime/memory.h"
#include "runtime/run_limits.h"
#include "runtime/step_observer.h"
#include "runtime/step_profile.h"
#include "runtime/weight_set.h"
#include "support/thread_pool.h"

namespace ingot::core {

// Provides memory for output `index` of the main program, in the place of its port.
struct OutputMemory {
  std::byte* (*allocate)(void* context, size_t index, DType dtype, std::span<const int64_t> shape,
                         size_t bytes);
  void* context;
};

// Shared by all programs of one run. Borrowed.
struct RunResources {
  const EngineData& data;
  const Program& program;  // the outermost one: main or init
  const LoadedBackends& backends;
  std::span<const std::unique_ptr<Queue>> queues;  // one per backend
  void* stream = nullptr;                          // of the caller, for queues on devices
  ThreadPool& pool;
  const WeightSet& weights;
  std::span<std::byte* const> inputs;  // of the main program
  std::span<std::byte* const> states;
  uint64_t states_version;  // changes with the addresses of the states
  OutputMemory outputs;
  std::vector<GrowingBlock>& arenas;       // one per place and nesting level
  GrowingBlock& working_memory;            // of routines
  std::byte* weight_ring = nullptr;        // on the device: WeightPlan::ring bytes
  StepProfile* profile = nullptr;          // of the main program; null: nothing is timed
  const StepObserver* observer = nullptr;  // of the main program's values; null: nobody looks
  const RunLimits* limits = nullptr;       // checked before each step; null: no limits
  bool uses_graphs = true;                 // queues may capture what they do
  bool names_ranges = false;               // of steps, for tools that watch devices
  const BoundGroups* groups = nullptr;     // of ranks; null: none
};

}  // namespace ingot::core
