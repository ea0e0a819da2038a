// SPDX-License-Identifier: Apache-2.0
// One run of a program: resolves addresses, then passes spans of calls to queues and runs the other steps on
// the host. The plan has all sizes; only data-dependent buffers are allocated here.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "runtime/run_limits.h"
#include "runtime/run_plan.h"
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
  bool names_ranges = false;               // of steps, for tools that watch devices
};

// Runs the main program. Throws UserError INGOT-U310 if an index is out of range in a kernel, INGOT-U311 if a
// computed value is out of its bounds; each names the node. On devices the work may still be running
// afterwards.
void run_main(const RunResources& resources, const Executable& executable, RunPlan& plan);

// Waits for a queue's work; errors as those of `run_main`.
void wait_for(const EngineData& data, const Program& program, Queue& queue);

}  // namespace ingot::core
