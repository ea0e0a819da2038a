// SPDX-License-Identifier: Apache-2.0
// The arguments of `ingot generate`.
#pragma once

#include <CLI/CLI.hpp>

#include "cli/commands.h"

namespace ingot::cli {

void add_generate(CLI::App& app, GenerateCommand& command);

}  // namespace ingot::cli
