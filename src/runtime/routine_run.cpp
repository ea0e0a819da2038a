// SPDX-License-Identifier: Apache-2.0
#include "runtime/routine_run.h"

#include "runtime/step_errors.h"
#include "support/error.h"

namespace ingot::core {

void run_routine(const RunResources& resources, const Executable& executable, Frame& frame, size_t index) {
  const ExecutableStep& step = executable.steps[index];
  RoutineArguments& arguments = frame.routines[index];
  size_t input = 0, output = 0;
  for (uint32_t i = 0; i < step.argument_count; ++i) {
    const BufferId id = executable.arguments[step.first_argument + i];
    TensorView& view = step.step->uses[i].writes ? arguments.outputs[output++] : arguments.inputs[input++];
    if (id != kNoId) view.data = frame.pointers[id];
  }
  const auto reserve = [](void* block, size_t bytes) {
    return static_cast<GrowingBlock*>(block)->reserve(bytes);
  };
  const WorkingMemory memory{reserve, &resources.working_memory};
  try {
    step.routine->run({.inputs = arguments.inputs,
                       .outputs = arguments.outputs,
                       .attributes = step.step->as<RoutineStep>()->attributes,
                       .pool = &resources.pool,
                       .memory = &memory,
                       .groups = resources.groups});
  } catch (const UserError& error) {
    fail_routine(resources.data, *step.step, error);
  } catch (const DeviceError& error) {
    fail_routine(resources.data, *step.step, error);
  }
}

}  // namespace ingot::core
