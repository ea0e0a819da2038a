// SPDX-License-Identifier: Apache-2.0
// Runs the steps of a program over a table of addresses. All sizes are in the plan; nothing is allocated here
// but late buffers.
#pragma once

#include <span>
#include <vector>

#include "runtime/run_limits.h"
#include "runtime/run_plan.h"
#include "runtime/step_profile.h"
#include "runtime/weight_set.h"
#include "support/thread_pool.h"

namespace ingot::core {

// Gives memory for output `index` of the main program.
struct OutputMemory {
  std::byte* (*allocate)(void* context, size_t index, DType dtype, std::span<const int64_t> shape,
                         size_t bytes);
  void* context;
};

// What all programs of one run share. Borrowed.
struct RunResources {
  const EngineData& data;
  ThreadPool& pool;
  const WeightSet& weights;
  std::span<std::byte* const> inputs;  // of the main program
  std::span<std::byte* const> states;
  uint64_t states_version;  // changes with the addresses of the states
  OutputMemory outputs;
  std::vector<GrowingBlock>& arenas;  // one a level of nesting
  GrowingBlock& scratch;
  std::vector<void*>& arguments;      // space for the arguments of one kernel call
  StepProfile* profile = nullptr;     // of the main program; null: nothing is timed
  const RunLimits* limits = nullptr;  // looked at before each step; null: there are none
};

class StepRunner {
 public:
  StepRunner(const RunResources& resources, RunPlan& plan) : resources_(resources), plan_(plan) {}

  // Runs the main program. Throws UserError INGOT-U310 if a kernel met an index out of range, INGOT-U311 if a
  // value that a step computed is out of its bounds; each names the node.
  void run(const Executable& executable);

 private:
  struct Ports {
    std::span<std::byte* const> inputs, outputs;  // outputs: of nested programs
    bool main;
  };

  void run_program(const Executable& executable, Frame& frame, const Ports& ports, size_t level);
  void resolve(const Executable& executable, Frame& frame, const Ports& ports, size_t level);
  std::byte* address(const Executable& executable, Frame& frame, const Ports& ports, BufferId id);
  std::byte* allocate_late(const Executable& executable, Frame& frame, const Ports& ports, BufferId id);
  std::byte* allocate_output(const Executable& executable, BufferId id);
  void run_step(const Executable& executable, Frame& frame, size_t index, size_t level);
  void run_watched_step(const Executable& executable, Frame& frame, size_t index, size_t level);
  void run_kernel(const Executable& executable, Frame& frame, const ExecutableStep& step);
  void run_routine(const Executable& executable, Frame& frame, const ExecutableStep& step, size_t index);
  void run_copy(const Executable& executable, Frame& frame, const ExecutableStep& step);
  void run_branch(const Executable& executable, Frame& frame, const ExecutableStep& step, size_t level);
  void run_loop(const Executable& executable, Frame& frame, const ExecutableStep& step, size_t level);
  void check_all(const Executable& executable) const;
  void bind_results(const Executable& executable, Frame& frame, const Ports& ports,
                    const ExecutableStep& step);

  const RunResources& resources_;
  RunPlan& plan_;
};

}  // namespace ingot::core
