// SPDX-License-Identifier: Apache-2.0
// What a Context holds, for the files that implement it.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/arguments.h"
#include "runtime/counters.h"
#include "runtime/engine.h"
#include "runtime/groups.h"
#include "runtime/memory.h"
#include "runtime/plan_cache.h"
#include "runtime/program_run.h"
#include "runtime/step_observer.h"
#include "runtime/step_profile.h"
#include "runtime/transfers.h"

namespace ingot::core {

struct ContextState {
  EngineCounters::Claimed counters;
  std::optional<MemoryAllocator> allocator;
  std::unique_ptr<ThreadPool> pool;  // null: the host's
  std::vector<ArgumentSlot> slots;
  PairedArguments pairs{{}};
  PlanCache plans;
  std::vector<std::byte*> inputs, states;  // addresses for the program
  std::vector<GrowingBlock> copies;        // of inputs that are not dense, one per input
  std::vector<Tensor> owned;               // states of the context, one per state; without data until needed
  Transfers outputs, updates;  // what the caller wants on the host: outputs, and states that are arguments
  uint64_t states_version = 1;
  std::vector<GrowingBlock> arenas;
  GrowingBlock working_memory;  // of routines
  GrowingBlock weight_ring;     // on the device
  // Weights that work enqueued on devices reads, those of the last run last; and what callers have recorded.
  std::vector<std::shared_ptr<const WeightSet>> in_use, recorded_weights;
  uint64_t recorded = 0;                            // spans of all queues
  std::vector<std::unique_ptr<Queue>> queues;       // one per backend of the engine
  bool reads_host = false;                          // devices may read the caller's host memory
  bool checks_at_once = false, uses_graphs = true;  // ContextOptions
  std::unique_ptr<StepProfile> profile;             // null: nothing is timed
  const StepObserver* observer = nullptr;           // null: nobody looks
  bool has_many_shapes = false;                     // and the log has been told
  BoundGroups groups;
  bool has_unopened_groups = false;     // on a device
  bool has_unpublished_memory = false;  // since something was planned or bound
  size_t published_working_memory = 0;  // bytes

  // Arenas and scratch grow in the first run of a plan, working memory also with data.
  bool may_have_grown() const {
    return has_unpublished_memory || published_working_memory != working_memory.bytes();
  }

  const MemoryAllocator* memory_source() const { return allocator ? &*allocator : nullptr; }
  void set_state(size_t index, std::byte* data) {
    if (states[index] == data) return;
    states[index] = data;
    ++states_version;
  }
};

// Where the values of a port lie; null: on the host.
inline DeviceMemory* memory_of(const Engine& engine, const Port& port) {
  const Place place = engine.data().main.buffers[port.buffer].place;
  return engine.backends().memories[place_number(place)];
}

}  // namespace ingot::core
