// SPDX-License-Identifier: Apache-2.0
// Context: what one thread needs to run an engine. Cheap; two runs of one context never overlap.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/arguments.h"
#include "runtime/engine.h"
#include "runtime/memory.h"
#include "runtime/run_limits.h"

namespace ingot::core {

struct RunPlan;

// Allocates output `index` of `bytes` bytes with these sizes; returns memory that the caller owns (64-byte
// aligned for the best speed), also if the run fails later.
struct OutputAllocator {
  void* (*allocate)(void* context, size_t index, DType dtype, std::span<const int64_t> shape, size_t bytes);
  void* context;
  // True: memory of the engine's device, which the run may still be filling when it returns. Outputs that the
  // engine has on the host are refused then. False: memory of the host, filled when the run returns.
  bool on_device = false;
};

struct ContextOptions {
  int threads = 0;  // of a pool of its own, the caller included; 0: the host's pool, which contexts share
  std::optional<MemoryAllocator>
      allocator;  // of all memory whose size follows from the engine's; none: the system
};

class Context {
 public:
  // UserError INGOT-U211 if the engine's file is seen to have changed, DeviceError INGOT-D003 if there are no
  // threads for it.
  explicit Context(std::shared_ptr<Engine> engine, const ContextOptions& options = {});
  ~Context();
  Context(Context&&) noexcept;

  // Sizes of the outputs for these inputs, without running; -1 where only a step can tell. Errors as those of
  // `run`.
  std::vector<std::vector<int64_t>> output_shapes(std::span<const Argument> inputs);

  // Runs the main program. `inputs` are the tensor arguments in the order of the signature, states that are
  // bound to arguments included (those must be dense, UserError INGOT-U306); outputs come from the allocator.
  // Allocates nothing itself after the first run of a shape, except when the arena has to grow. UserError
  // INGOT-U30x names input, dim and range; INGOT-U316 and U317 if it ends by its limits.
  void run(std::span<const Argument> inputs, const OutputAllocator& allocator,
           const RunOptions& options = {});
  // Until what runs enqueued is done. Throws what a run would have thrown if it had waited.
  void synchronize() const;
  int threads() const;  // of the next run, the caller included

  // Binds state `index` to memory of the caller (torch's own buffer), by address; null: back to memory of the
  // context, which starts with the engine's initial value.
  void bind_state(size_t index, void* data);
  void reset_states();  // owned states get their initial value again
  // Gives owned states the values of another context, of this engine or of a copy of it.
  void copy_states(const Context& other);

  struct Memory {
    size_t arena, states, scratch;  // bytes
    size_t cached_plans;
  };
  Memory memory() const;

  // Times each step of the runs from now on; turning it on begins anew. Off, runs are as fast as before.
  void set_profiling(bool on);
  // What was measured since the sizes last changed, as JSON (runtime/step_profile.h). Takes some milliseconds
  // to measure the machine's limits.
  std::string profile() const;

  const Engine& engine() const { return *engine_; }

 private:
  RunPlan& plan_for(std::span<const Argument> inputs);
  void log_plan(std::span<const Argument> inputs, double microseconds);
  void place_arguments(std::span<const Argument> inputs);
  ThreadPool& pool() const;
  std::byte* place_state(const ArgumentSlot& slot, const Argument& argument);
  std::byte* place_input(const ArgumentSlot& slot, const Argument& argument);
  std::byte* place_output(const OutputAllocator& allocator, size_t index, DType dtype,
                          std::span<const int64_t> shape, size_t bytes);
  void fill(DeviceMemory* memory, std::byte* to, const std::byte* from, size_t bytes);
  void require_weights(const WeightSet& weights) const;
  void finish(const std::shared_ptr<const WeightSet>& weights, bool may_return_early);

  std::shared_ptr<Engine> engine_;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ingot::core
