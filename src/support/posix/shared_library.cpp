// SPDX-License-Identifier: Apache-2.0
#include "support/shared_library.h"

#include <dlfcn.h>

namespace ingot::core {

void* open_shared_library(const char* name, std::string& problem) {
  void* const library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) problem = ::dlerror();
  return library;
}

void* find_function(void* library, const char* name) { return ::dlsym(library, name); }

}  // namespace ingot::core
