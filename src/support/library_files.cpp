// SPDX-License-Identifier: Apache-2.0
#include "support/library_files.h"

#include <cstdlib>

#include <fmt/core.h>

namespace ingot::core {

OpenedLibrary open_library(const LibraryFiles& files) {
  const char* named = files.variable != nullptr ? std::getenv(files.variable) : nullptr;
  const bool is_named = named != nullptr && *named != '\0';
  OpenedLibrary opened;
  std::string tried;
  for (const char* file : is_named ? std::array<const char*, 2>{named, nullptr} : files.files) {
    if (file == nullptr) continue;
    std::string problem;
    opened.library = open_shared_library(file, problem);
    if (opened.library != nullptr) return opened;
    tried += (tried.empty() ? "" : "; ") + problem;
  }
  opened.problem = fmt::format("{} cannot be opened: {}", files.name, tried);
  return opened;
}

std::string lacks_function(const LibraryFiles& files, const char* function) {
  return fmt::format("{} is too old: it lacks {}; {} is needed", files.name, function, files.needed);
}

std::string problem_with_version(const LibraryFiles& files, int64_t version, int64_t oldest) {
  if (version >= oldest) return {};
  return fmt::format("{} is too old: its version is {}; {} is needed", files.name, version, files.needed);
}

}  // namespace ingot::core
