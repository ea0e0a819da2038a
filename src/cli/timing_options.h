// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>

#include <string>

#include "cli/commands.h"

namespace ingot::cli {

// "" or what is wrong: of an option that takes seconds.
std::string check_seconds(const std::string& text);

void add_bench(CLI::App& app, BenchCommand& command);
void add_profile(CLI::App& app, ProfileCommand& command);

}  // namespace ingot::cli
