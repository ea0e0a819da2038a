// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

namespace ingot::core {

std::string environment_variable(const char* name);  // "" if it is not set
// The folder of what programs of this user can recompute: $XDG_CACHE_HOME or $HOME/.cache, on Windows
// %LOCALAPPDATA%. Empty if the environment does not say.
std::filesystem::path user_cache_folder();

}  // namespace ingot::core
