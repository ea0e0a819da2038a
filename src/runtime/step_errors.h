// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "backends/executor.h"
#include "engine/engine_data.h"
#include "support/error.h"

namespace ingot::core {

// UserError INGOT-U310 for a kernel's status, with the node of the user's model that its step of `program`,
// or of a nested program, computes.
[[noreturn]] void fail_launch(const EngineData& data, const Program& program, const CallFailure& failure);
// UserError INGOT-U311: a step computed an impossible value.
[[noreturn]] void fail_value(const EngineData& data, const Step& step, const std::string& cause);
// The same error, with the node whose routine threw it.
[[noreturn]] void fail_routine(const EngineData& data, const Step& step, const UserError& error);
[[noreturn]] void fail_routine(const EngineData& data, const Step& step, const DeviceError& error);

}  // namespace ingot::core
