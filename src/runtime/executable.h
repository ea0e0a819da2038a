// SPDX-License-Identifier: Apache-2.0
// A program made ready to run: names became numbers, dims became slots of one table, backends and routines
// were looked up. Immutable, shared by all contexts of an engine.
#pragma once

#include <memory>
#include <vector>

#include "engine/dim_table.h"
#include "engine/engine_data.h"
#include "routines/routine.h"
#include "runtime/conditions.h"
#include "runtime/loaded_backends.h"

namespace ingot::core {

using DimSlot = uint32_t;
using SymbolSlot = uint32_t;

// All dims of a program and of those nested in it. Symbols that steps bind are "late": what depends on them
// is evaluated again when they are bound.
struct DimPool {
  DimTable table;
  std::vector<bool> late;                             // one a symbol
  std::vector<std::vector<SymbolSlot>> late_symbols;  // one a dim: the late symbols in it
  std::vector<std::vector<DimSlot>> users;            // one a symbol: the dims that a late symbol is in
  bool is_late(DimSlot slot) const { return !late_symbols[slot].empty(); }
};

struct ExecutableBuffer {
  BufferId root;     // itself unless it is an alias
  DimSlot bytes;     // of storage, as its type says
  DimSlot capacity;  // what the memory that holds it has: the arena's share, or the root's bytes
  DimSlot offset;    // kAlias: in its root, summed up
  std::vector<DimSlot> shape;
};

struct ExecutableBinding {
  SymbolSlot symbol;
  BufferId buffer;
  DimSlot limit;
};

struct ExecutableStep {
  const Step* step;
  const Routine* routine = nullptr;                 // kRoutine
  uint32_t first_argument = 0, argument_count = 0;  // in Executable::arguments
  uint32_t first_value = 0, value_count = 0;        // in Executable::values: its symbols, then its sizes
  bool late = false;                                // some size of it is told by an earlier step
  std::vector<ExecutableBinding> binds;
};

// Steps [first, last). Either calls of one backend, of which only the last may bind symbols, or one step that
// the host runs.
struct ExecutableSpan {
  uint32_t first, last;
  uint32_t backend;  // position in LoadedBackends; kNoId: the host's own
};

struct Executable {
  const Program* program;
  std::shared_ptr<const DimPool> dims;  // one for a program and all that is nested in it
  std::vector<ExecutableBuffer> buffers;
  std::vector<ExecutableStep> steps;
  std::vector<ExecutableSpan> spans;
  std::vector<BufferId> arguments;  // of all steps
  std::vector<DimSlot> values;      // of all launches, and the bytes that copies move
  std::vector<uint8_t> places;      // numbers (place_number) of the places where arena buffers lie
  // Buffers in inputs, outputs or dynamic memory, whose address changes from run to run, and the positions of
  // `arguments` that name them.
  std::vector<BufferId> moving;
  std::vector<uint32_t> moving_arguments;
  std::vector<BufferId> late_buffers;  // outputs and dynamic roots whose size a step tells
  std::vector<SymbolSlot> binds;       // symbols that its own steps bind
  bool late = false;                   // some size of its buffers is told by a step
  Conditions conditions;               // on the sizes of inputs; of the main program only
  std::vector<Executable> nested;
};

// `data` owns `program`. UserError INGOT-U224 if a routine is unknown here, INGOT-U206 if a launch is none of
// its backend.
Executable make_executable(const Program& program, const EngineData& data, const LoadedBackends& backends);

}  // namespace ingot::core
