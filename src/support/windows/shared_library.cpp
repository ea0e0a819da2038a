// SPDX-License-Identifier: Apache-2.0
#include "support/shared_library.h"

#include <windows.h>

#include "support/windows/text.h"

namespace ingot::core {

// Not from the current folder, where others may have put a library of that name.
void* open_shared_library(const char* name, std::string& problem) {
  constexpr DWORD kFrom = LOAD_LIBRARY_SEARCH_DEFAULT_DIRS;
  const HMODULE library = ::LoadLibraryExW(widen(name).c_str(), nullptr, kFrom);
  if (library == nullptr) problem = std::string(name) + ": " + last_error_text();
  return reinterpret_cast<void*>(library);
}

void* find_function(void* library, const char* name) {
  return reinterpret_cast<void*>(::GetProcAddress(reinterpret_cast<HMODULE>(library), name));
}

}  // namespace ingot::core
