// SPDX-License-Identifier: Apache-2.0
#include "support/environment.h"

#include <windows.h>

#include "support/paths.h"
#include "support/windows/text.h"

namespace ingot::core {

std::string environment_variable(const char* name) {
  const std::wstring wide = widen(name);
  std::wstring value;
  for (DWORD length = ::GetEnvironmentVariableW(wide.c_str(), nullptr, 0); length > value.size();) {
    value.resize(length);
    length = ::GetEnvironmentVariableW(wide.c_str(), value.data(), length);
    if (length < value.size()) value.resize(length);  // else another thread made it longer meanwhile
  }
  return narrow(value);
}

std::filesystem::path user_cache_folder() {
  const std::filesystem::path folder = to_path(environment_variable("LOCALAPPDATA"));
  return folder.is_absolute() ? folder : std::filesystem::path();
}

}  // namespace ingot::core
