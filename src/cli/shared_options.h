// SPDX-License-Identifier: Apache-2.0
// Arguments that several commands take.
#pragma once

#include <CLI/CLI.hpp>

#include <map>
#include <string>
#include <vector>

#include "cli/commands.h"

namespace ingot::cli {

// Every option of a build, into `options` by its name.
void add_build_options(CLI::App& app, std::map<std::string, std::string>& options);
CLI::Option* add_engine(CLI::App& app, const char* name, std::string& file);
CLI::Option* add_weights(CLI::App& app, std::vector<std::string>& files, const char* summary);
void add_seed(CLI::App& app, RunCommand& command, const char* summary);
// How many rows of a table are printed.
void add_top(CLI::App& app, size_t& top, const char* summary);
// Files of inputs, and the seed of those that are random.
void add_inputs(CLI::App& app, RunCommand& command);
// How engines are opened.
void add_load_options(CLI::App& app, RunCommand& command);
// Both.
void add_input_options(CLI::App& app, RunCommand& command);
// The same, and the engine.
void add_run_options(CLI::App& app, RunCommand& command);

}  // namespace ingot::cli
