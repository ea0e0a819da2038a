// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace ingot::cli {

// Describes an error in a command line in one message that suggests what may have been meant.
std::string describe_misuse(const CLI::App& app, const CLI::ParseError& error);

}  // namespace ingot::cli
