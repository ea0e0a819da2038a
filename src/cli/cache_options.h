// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>

#include "cli/commands.h"

namespace ingot::cli {

void add_cache(CLI::App& app, CacheCommand& command);

}  // namespace ingot::cli
