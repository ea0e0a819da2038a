// SPDX-License-Identifier: Apache-2.0
#include "support/environment.h"

#include <cstdlib>

namespace ingot::core {

std::string environment_variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::filesystem::path user_cache_folder() {
  if (const std::string folder = environment_variable("XDG_CACHE_HOME"); folder.starts_with('/'))
    return folder;
  const std::string home = environment_variable("HOME");
  return home.starts_with('/') ? std::filesystem::path(home) / ".cache" : std::filesystem::path();
}

}  // namespace ingot::core
