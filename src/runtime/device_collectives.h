// SPDX-License-Identifier: Apache-2.0
// Collectives of devices: what a queue is told of a step, and the way over the host where queues have none.
#pragma once

#include "routines/communicator.h"
#include "runtime/log.h"
#include "runtime/run_plan.h"
#include "runtime/run_resources.h"

namespace ingot::core {

// Whether the program, or one in it, has collectives of devices.
bool has_device_collectives(const Program& program);

// Opens the groups in the queue of the device, once per context. `tell`: of each that has to go over the
// host or by a library alone, with the reason.
void open_device_groups(BoundGroups& groups, Queue& queue,
                        const std::function<void(LogLevel level, const std::string& line)>& tell);

// Tells the calls of steps [first, last) what they are. False if a step of them has to go over the host.
bool resolve_collectives(const RunResources& resources, const Executable& executable, Frame& frame,
                         const ExecutableSpan& span);

// Runs step `index`, which is a collective of a device, by copies on the host. Everything before it is done.
void run_collective_on_host(const RunResources& resources, const Executable& executable, Frame& frame,
                            size_t index);

}  // namespace ingot::core
