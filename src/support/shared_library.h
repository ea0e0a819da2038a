// SPDX-License-Identifier: Apache-2.0
// Libraries that are opened at run time, for as long as the process lives.
#pragma once

#include <string>

namespace ingot::core {

// Null if it cannot be opened; `problem` then has the system's reason.
void* open_shared_library(const char* name, std::string& problem);
void* find_function(void* library, const char* name);  // null: the library lacks it

// The same with its type; `missing` becomes the name of a function that the library lacks.
template <typename Function>
void find_function(void* library, const char* name, Function*& function, const char*& missing) {
  function = reinterpret_cast<Function*>(find_function(library, name));
  if (function == nullptr) missing = name;
}

}  // namespace ingot::core
