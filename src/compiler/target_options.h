// SPDX-License-Identifier: Apache-2.0
// Options that say where an engine runs. Options are set in the order of their names: `cpu`, `device`,
// `target`.
#pragma once

#include <string_view>

#include "compiler/compile_options.h"

namespace ingot::core {

void set_levels(CompileOptions& options, std::string_view name, std::string_view value);
// After `cpu`, which names the device if the backend is the host and no other device is named here.
void set_device(CompileOptions& options, std::string_view name, std::string_view value);
// The machine need not be this one. After `cpu` and `device`.
void set_platform(CompileOptions& options, std::string_view name, std::string_view value);
// After all options are known.
void check_levels(CompileOptions& options);

}  // namespace ingot::core
