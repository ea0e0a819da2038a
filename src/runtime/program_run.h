// SPDX-License-Identifier: Apache-2.0
// One run of a program: resolves addresses, then passes spans of calls to queues and runs the other steps on
// the host. The plan has all sizes; only data-dependent buffers are allocated here.
#pragma once

#include "runtime/run_plan.h"
#include "runtime/run_resources.h"

namespace ingot::core {

// Runs the main program. Throws UserError INGOT-U310 if an index is out of range in a kernel, INGOT-U311 if a
// computed value is out of its bounds; each names the node. On devices the work may still be running
// afterwards.
void run_main(const RunResources& resources, const Executable& executable, RunPlan& plan);

}  // namespace ingot::core
