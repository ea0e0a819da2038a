// SPDX-License-Identifier: Apache-2.0
// A program prepared for running: names resolved to indices, dims to slots of one table, backends and
// routines looked up. Immutable, shared by all contexts of an engine.
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

// All dims of a program and its nested programs. Symbols that steps bind are data-dependent: dims
// that use them are re-evaluated when they are bound.
struct DimPool {
  DimTable table;
  std::vector<bool> data_dependent;                             // one per symbol
  std::vector<std::vector<SymbolSlot>> data_dependent_symbols;  // per dim: the data-dependent symbols in it
  std::vector<std::vector<DimSlot>> users;  // per symbol: the dims that use it, if it is data-dependent
  bool is_data_dependent(DimSlot slot) const { return !data_dependent_symbols[slot].empty(); }
};

struct ExecutableBuffer {
  BufferId root;     // itself unless it is an alias
  DimSlot bytes;     // of storage, according to its type
  DimSlot capacity;  // of the memory that holds it: its share of the arena, or the root's bytes
  DimSlot offset;    // kAlias: in its root, summed up
  std::vector<DimSlot> shape;
};

struct ExecutableBinding {
  SymbolSlot symbol;
  BufferId buffer;
  int64_t least;
  DimSlot limit;
};

struct ExecutableStep {
  const Step* step;
  const Routine* routine = nullptr;                 // kRoutine
  uint32_t first_argument = 0, argument_count = 0;  // in Executable::arguments
  uint32_t first_value = 0, value_count = 0;        // in Executable::values: its symbols, then its sizes
  bool data_dependent = false;                      // a size of it depends on an earlier step
  std::vector<ExecutableBinding> binds;
};

// Steps [first, last). Either calls of one backend, of which only the last may bind symbols, or one step that
// the host runs.
struct ExecutableSpan {
  uint32_t first, last;
  uint32_t backend;  // position in LoadedBackends; kNoId: the host's own
  bool moves;        // copies between the host and the device, and nothing else
  bool waits;        // runs on the host, of an engine with devices: what was enqueued is done before
};

struct Executable {
  const Program* program;
  std::shared_ptr<const DimPool> dims;  // shared by a program and all its nested programs
  std::vector<ExecutableBuffer> buffers;
  std::vector<ExecutableStep> steps;
  std::vector<ExecutableSpan> spans;
  std::vector<BufferId> arguments;  // of all steps
  std::vector<DimSlot> values;      // of all launches, and the sizes of copies
  std::vector<uint8_t> places;      // numbers (place_number) of the places of arena buffers
  // Buffers whose addresses change from run to run: in inputs, outputs or dynamic memory, and parts of others
  // at data-dependent offsets, with their roots. And the positions of `arguments` that refer to them.
  std::vector<BufferId> moving;
  std::vector<uint32_t> moving_arguments;
  std::vector<BufferId> data_dependent_buffers;  // outputs and dynamic roots whose size a step determines
  std::vector<SymbolSlot> binds;                 // symbols that its own steps bind
  bool has_device_collectives = false;           // among its own steps
  bool data_dependent = false;                   // a size of its buffers depends on a step
  Conditions conditions;                         // on the sizes of inputs; of the main program only
  std::vector<Executable> nested;
};

// `data` owns `program`. UserError INGOT-U224 if a routine is unknown here, INGOT-U206 if a backend rejects a
// launch.
Executable make_executable(const Program& program, const EngineData& data, const LoadedBackends& backends);

}  // namespace ingot::core
