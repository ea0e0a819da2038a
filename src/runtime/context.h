// SPDX-License-Identifier: Apache-2.0
// Context: what one thread needs to run an engine. Cheap; two runs of one context never overlap.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "routines/communicator.h"
#include "runtime/arguments.h"
#include "runtime/engine.h"
#include "runtime/memory.h"
#include "runtime/run_limits.h"

namespace ingot::core {

struct ContextState;
struct RunPlan;
struct StepObserver;

// Allocates output `index` of `bytes` bytes with these sizes; the memory belongs to the caller (64-byte
// aligned for best speed), even if the run fails later.
struct OutputAllocator {
  void* (*allocate)(void* context, size_t index, DType dtype, std::span<const int64_t> shape, size_t bytes);
  void* context;
  // True: memory of the engine's device, which the run may still be filling when it returns; outputs that the
  // engine has on the host are then rejected. False: host memory, filled when the run returns.
  bool on_device = false;
};

struct ContextOptions {
  int threads = 0;  // of its own pool, the caller included; 0: the host's pool, which contexts share
  std::optional<MemoryAllocator>
      allocator;  // for all memory whose size follows from the engine's; null: the system
  std::vector<BoundGroups::Bound> groups;  // see bind_groups
  // Of devices: a run waits until its work is done, so that it tells its own failure; and whether queues
  // capture what they do.
  bool checks_at_once = false, uses_graphs = true;
};

class Context {
 public:
  // UserError INGOT-U211 if the engine's file is found to have changed, U351 and U352 if it is not for these
  // groups; DeviceError INGOT-D003 if the threads cannot be started.
  explicit Context(std::shared_ptr<Engine> engine, const ContextOptions& options = {});
  ~Context();
  Context(Context&&) noexcept;

  // Sizes of the outputs for these inputs, without running; -1 if only a step determines it. Errors like
  // those of `run`.
  std::vector<std::vector<int64_t>> output_shapes(std::span<const Argument> inputs);

  // Runs the main program. `inputs` are the tensor arguments in the order of the signature, including states
  // that are bound to arguments (those must be dense, UserError INGOT-U306); outputs come from the allocator.
  // After the first run of a shape, allocates nothing itself unless the arena has to grow. UserError
  // INGOT-U30x names input, dim and range; INGOT-U316 and U317 if it exceeds its limits.
  void run(std::span<const Argument> inputs, const OutputAllocator& allocator,
           const RunOptions& options = {});
  // Waits for everything that runs have enqueued. Throws what a run would have thrown if it had waited.
  void synchronize() const;
  int threads() const;     // of the next run, the caller included
  bool is_usable() const;  // false once a group of ranks has failed

  // Binds state `index` to memory of the caller (torch's own buffer); null: back to memory of the context,
  // which starts with the engine's initial value.
  void bind_state(size_t index, void* data);
  void reset_states();  // owned states get their initial values again
  // Copies the values of owned states from another context, of this engine or a copy of it.
  void copy_states(const Context& other);
  // Exchanges owned states with another context, of an engine with equal states: each keeps its address.
  void take_states(Context& other);

  struct Memory {
    size_t arena, states, scratch;  // bytes
    size_t cached_plans;
  };
  Memory memory() const;

  // Times each step of later runs; enabling it again starts over. While disabled, it costs nothing.
  // `counts`: StepProfile::Judge, of an engine on the host, for `step_nanoseconds`.
  void set_profiling(bool on, std::function<bool()> counts = {});
  // Measurements since the sizes last changed, as JSON (runtime/step_profile.h). Takes some milliseconds to
  // measure the machine's limits.
  std::string profile() const;
  // The shortest time of each step of the main program, in nanoseconds, the largest number if none counted;
  // nothing if nothing was profiled.
  std::vector<int64_t> step_nanoseconds() const;

  // Shows the values of later runs as they are computed; null: no longer. Borrowed.
  void set_observer(const StepObserver* observer);

  const Engine& engine() const { return *engine_; }
  ContextCounters& counters() const;  // live as long as the engine
  void count_error(std::string_view code) const noexcept { engine_->counters().errors().add(code); }

 private:
  std::span<const Argument> accept(std::span<const Argument> given);  // checked, as the program has them
  RunPlan& plan_for(std::span<const Argument> inputs);
  void log_plan(std::span<const Argument> inputs, double microseconds);
  void place_arguments(std::span<const Argument> inputs);
  ThreadPool& pool() const;
  std::byte* place_state(const ArgumentSlot& slot, const Argument& argument);
  std::byte* place_input(const ArgumentSlot& slot, const Argument& argument);
  std::byte* place_output(const OutputAllocator& allocator, size_t index, DType dtype,
                          std::span<const int64_t> shape, size_t bytes);
  void require_weights(const WeightSet& weights) const;
  std::shared_ptr<const WeightSet> weights_of(const RunOptions& options) const;
  std::byte* place_weight_ring(const WeightSet& weights);
  void finish(const std::shared_ptr<const WeightSet>& weights, bool may_return_early);
  void abandon() const noexcept;
  uint64_t recorded_spans() const;
  void open_groups();
  void publish_memory() const;
  void keep_recorded(const std::shared_ptr<const WeightSet>& weights);

  std::shared_ptr<Engine> engine_;
  std::unique_ptr<ContextState> state_;
};

}  // namespace ingot::core
