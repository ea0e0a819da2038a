// SPDX-License-Identifier: Apache-2.0
// Where the time of a run goes, step by step.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>

#include "cli/session.h"

namespace ingot::cli {

// Runs the engine for so many seconds, or until Ctrl-C; the JSON of ingot_context_profile.
nlohmann::json measure_steps(Session& session, double seconds);

// The `top` slowest steps as a table on stdout.
void print_step_times(const nlohmann::json& profile, size_t top);

}  // namespace ingot::cli
