// SPDX-License-Identifier: Apache-2.0
// A program specialized for one set of input sizes: evaluated dims, arena offsets, tensors for routines, and
// the address table. Belongs to one context; a run only fills in addresses.
#pragma once

#include <vector>

#include "runtime/executable.h"
#include "runtime/memory.h"

namespace ingot::core {

struct RoutineArguments {
  std::vector<TensorView> inputs, outputs;
};

// A collective of a device, once its group is known.
struct DeviceStep {
  DeviceCollective collective;
  bool is_known = false, is_on_host = false;
};

// One program (the main one or a nested one) at these sizes.
struct Frame {
  std::vector<int64_t> offsets;      // in the arena of its place, one per buffer
  std::vector<int64_t> arena_bytes;  // one per place
  std::vector<std::byte*> arenas;    // one per place
  std::vector<std::byte*> pointers;  // one per buffer
  std::vector<void*> arguments;      // as Executable::arguments
  std::vector<int64_t> values;       // as Executable::values
  std::vector<KernelCall> calls;     // one per step; of kernels and copies, pointing into the two lists above
  std::vector<RoutineArguments> routines;  // one per step; empty for other kinds
  std::vector<DeviceStep> device_steps;    // one per step, if the program has collectives of a device
  std::vector<GrowingBlock> blocks;        // dynamic buffers by id, then one per carried value
  std::vector<Frame> nested;
  // The inputs from which the reused addresses were computed.
  std::vector<std::byte*> known_arenas;
  uint64_t weights = 0, states = 0;
  // Of one span; kept, so that runs do not allocate.
  std::vector<Prefetch> prefetches;
  std::vector<uint64_t> identity;
};

struct RunPlan {
  std::vector<int64_t> key;      // all dims of all arguments, one after another
  std::vector<int64_t> symbols;  // one per symbol
  std::vector<bool> bound;       // one per symbol
  std::vector<int64_t>
      values;  // one per dim; those of data-dependent dims are valid only while their symbols are bound
  Frame frame;
  uint64_t number = 0;  // of a context's plans, each of which has its own; 0: of none
};

// `symbols` has a value for each symbol that inputs bind. UserError INGOT-U312 if they break a condition of
// the program, which is checked first; INGOT-U206 if sizes break the program's own plan, which would make its
// memory accesses unsafe.
RunPlan make_run_plan(const Executable& executable, std::vector<int64_t> key, std::vector<int64_t> symbols);

// Binds data-dependent symbol `symbol` and evaluates the dims that use it.
void bind_symbol(const DimPool& dims, RunPlan& plan, SymbolSlot symbol, int64_t value);
// Whether the value of `slot` is known now.
bool is_known(const DimPool& dims, const RunPlan& plan, DimSlot slot);
// Whether all dims of a buffer are: beside a dim of 0, its bytes are known earlier.
bool has_known_shape(const Executable& executable, const RunPlan& plan, BufferId id);

// Checks the sizes of one buffer against the memory that holds it.
void check_fit(const Executable& executable, const RunPlan& plan, BufferId id);
// Fills the launch values or routine tensors of one step from the plan's values. UserError INGOT-U311 if a
// copy's sizes differ.
void evaluate_step(const Executable& executable, const RunPlan& plan, Frame& frame, size_t index);

}  // namespace ingot::core
