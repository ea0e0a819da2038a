// SPDX-License-Identifier: Apache-2.0
// Options of a build, shared by Python, C++, C and the command line. One row in options.cpp is one option.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>

#include "compiler/compile_options.h"

namespace ingot::core {

// The description of an option, for documentation, --help and messages.
struct OptionInfo {
  std::string_view name, type, default_value, summary;
};
std::span<const OptionInfo> all_options();

// Options are strings by name ("optimization_level" -> "3"). UserError INGOT-U001 names the nearest option,
// INGOT-U002 an invalid value.
CompileOptions parse_options(const std::map<std::string, std::string>& options);

}  // namespace ingot::core
