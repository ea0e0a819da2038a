// SPDX-License-Identifier: Apache-2.0
// When the host waits for devices.
#pragma once

#include "runtime/run_resources.h"

namespace ingot::core {

// Until a queue's work is done. Errors as those of `run_main`.
void wait_for(const EngineData& data, const Program& program, Queue& queue);

// Before the host touches what devices may be copying, and before memory is replaced that they may be using.
void wait_for_devices(const RunResources& resources);

// Branches and loops follow values, which no recording has, and which the caller's stream may still be
// making.
void follow_live(const RunResources& resources);

}  // namespace ingot::core
