// SPDX-License-Identifier: Apache-2.0
// Values of a run as its steps compute them. A context shows them only on request: the plan, the kernels and
// their results stay the same, and each step is waited for.
#pragma once

#include "runtime/run_plan.h"
#include "types/tensor.h"

namespace ingot::core {

// Receives a value that a step of the main program has just written, row-major, valid during the call.
struct StepObserver {
  void (*observe)(void* user, size_t step, const std::string& name, const Tensor& value);
  void* user;
};

// Shows what step `index` wrote. Values in blocked layouts, which hold padding, are left out.
void show_results(const StepObserver& observer, const Executable& executable, const RunPlan& plan,
                  size_t index, const LoadedBackends& backends);

}  // namespace ingot::core
