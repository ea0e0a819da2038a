// SPDX-License-Identifier: Apache-2.0
// Where the buffers of one program are in one run, the main one (level 0) or a nested one.
#pragma once

#include "runtime/run_plan.h"
#include "runtime/run_resources.h"
#include "runtime/weight_plan.h"

namespace ingot::core {

struct Ports {
  std::span<std::byte* const> inputs, outputs;  // outputs: of nested programs
};

// How the weights of the main program are streamed; null: they are not, or it is another program.
inline const WeightPlan* weight_plan_of(const RunResources& resources, const Program& program) {
  return &program == &resources.data.main ? resources.weights.plan.get() : nullptr;
}

class ProgramAddresses {
 public:
  ProgramAddresses(const RunResources& resources, const RunPlan& plan, const Executable& executable,
                   Frame& frame, const Ports& ports, size_t level)
      : resources_(resources),
        plan_(plan),
        executable_(executable),
        program_(*executable.program),
        frame_(frame),
        ports_(ports),
        level_(level) {}

  // Fills the frame's pointers and arguments before the first step: first those that differ from run to run,
  // for which the caller gives memory (DeviceError INGOT-D302 if not), then the others.
  void resolve_moving();
  void resolve();
  // The same for buffers whose size a step has computed.
  void resolve_sized();

 private:
  void reserve_arenas();
  bool keeps_addresses() const;
  void set_pointer(BufferId id);
  void set_moving_arguments();
  void set_streamed_arguments();
  std::byte* address(BufferId id);
  std::byte* address(BufferId, const InputStorage& input) const { return ports_.inputs[input.index]; }
  std::byte* address(BufferId id, const OutputStorage& output);
  std::byte* address(BufferId id, const WeightStorage& weight) const {
    return address_of_weight(id, weight.id);
  }
  std::byte* address(BufferId id, const ConstantStorage& constant) const {
    return address_of_weight(id, constant.id);
  }
  std::byte* address(BufferId, const StateStorage& state) const { return resources_.states[state.index]; }
  std::byte* address(BufferId id, const ArenaStorage&) const;
  std::byte* address(BufferId, const AliasStorage&) const { return nullptr; }  // follows from its root's
  // Known from the start if an outer program's step determined its size.
  std::byte* address(BufferId id, DynamicStorage) { return allocate_data_dependent(id); }
  std::byte* address_of_weight(BufferId id, uint32_t weight) const;
  std::byte* allocate_data_dependent(BufferId id);
  std::byte* allocate_output(BufferId id, const OutputStorage& output);

  const RunResources& resources_;
  const RunPlan& plan_;
  const Executable& executable_;
  const Program& program_;
  Frame& frame_;
  const Ports ports_;
  const size_t level_;
};

}  // namespace ingot::core
