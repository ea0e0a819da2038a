// SPDX-License-Identifier: Apache-2.0
// Time per step of a run.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>

#include "cli/session.h"

namespace ingot::cli {

// Runs the engine for the given time, or until Ctrl-C; returns the JSON of ingot_context_profile.
nlohmann::json measure_steps(Session& session, double seconds);

// The line "shapes: input_ids:1x128", if the engine takes inputs of several sizes.
void print_shapes(const Session& session);

// Prints the `top` slowest steps as a table to stdout.
void print_step_times(const nlohmann::json& profile, size_t top);

}  // namespace ingot::cli
