// SPDX-License-Identifier: Apache-2.0
// Libraries that are opened at run time, for as long as the process lives.
#pragma once

#include <string>

namespace ingot::core {

// Null if it cannot be opened; `problem` then has the system's reason.
void* open_shared_library(const char* name, std::string& problem);
void* find_function(void* library, const char* name);  // null: the library lacks it

}  // namespace ingot::core
