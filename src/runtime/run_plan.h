// SPDX-License-Identifier: Apache-2.0
// What a program becomes for one set of input sizes: evaluated dims, arena offsets, tensors for routines, and
// the table of addresses. Belongs to one context; a run only fills in addresses.
#pragma once

#include <vector>

#include "runtime/executable.h"
#include "runtime/memory.h"

namespace ingot::core {

struct RoutineArguments {
  std::vector<TensorView> inputs, outputs;
};

// One program (the main one or a nested one) at these sizes.
struct Frame {
  std::vector<int64_t> offsets;            // in the arena of its place, one a buffer
  std::vector<int64_t> arena_bytes;        // one a place
  std::vector<std::byte*> arenas;          // one a place
  std::vector<std::byte*> pointers;        // one a buffer
  std::vector<void*> arguments;            // as Executable::arguments
  std::vector<int64_t> values;             // as Executable::values
  std::vector<KernelCall> calls;           // one a step; of kernels and copies, into the two lists above
  std::vector<RoutineArguments> routines;  // one a step; empty for other kinds
  std::vector<GrowingBlock> blocks;        // dynamic buffers by id, and then one a carried value
  std::vector<Frame> nested;
  // What the addresses that outlive a run were computed for.
  std::vector<std::byte*> known_arenas;
  uint64_t weights = 0, states = 0;
};

struct RunPlan {
  std::vector<int64_t> key;      // all dims of all arguments, one after another
  std::vector<int64_t> symbols;  // one a symbol
  std::vector<bool> bound;       // one a symbol
  std::vector<int64_t> values;   // one a dim; of late ones only while their symbols are bound
  Frame frame;
};

// `symbols` has a value for each symbol that inputs bind. UserError INGOT-U312 if they break a condition of
// the program, before anything else; INGOT-U206 if sizes break the program's own plan: then no memory outside
// of its buffers would have been safe.
RunPlan make_run_plan(const Executable& executable, std::vector<int64_t> key, std::vector<int64_t> symbols);

// Gives late symbol `symbol` a value and evaluates what hangs on it.
void bind_symbol(const DimPool& dims, RunPlan& plan, SymbolSlot symbol, int64_t value);
// True if the value of `slot` is known now.
bool is_known(const DimPool& dims, const RunPlan& plan, DimSlot slot);

// Checks sizes of one buffer against the memory it lies in.
void check_fit(const Executable& executable, const RunPlan& plan, BufferId id);
// Fills the values of a launch, and routine tensors, of one step from the plan's values. UserError INGOT-U311
// if a copy is between two sizes.
void evaluate_step(const Executable& executable, const RunPlan& plan, Frame& frame, size_t index);

}  // namespace ingot::core
