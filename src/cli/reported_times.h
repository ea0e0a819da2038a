// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/session.h"

namespace ingot::cli {

// measure_steps with the engine's name; written to the page that the command asks for, if it does.
nlohmann::json reported_times(Session& session, const BenchCommand& command);

}  // namespace ingot::cli
