// SPDX-License-Identifier: Apache-2.0
// Libraries that are opened at run time, as records: where their files are, and what is wrong with them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "support/shared_library.h"

namespace ingot::core {

struct LibraryFiles {
  const char* name;                  // in messages
  const char* variable;              // of the environment, which may name the file; null: none
  std::array<const char*, 2> files;  // tried in turn otherwise, as the loader finds them; null: none
  const char* needed;                // in messages: "2.18"
};

struct OpenedLibrary {
  void* library = nullptr;
  std::string problem;  // why there is none
};
OpenedLibrary open_library(const LibraryFiles& files);

std::string lacks_function(const LibraryFiles& files, const char* function);
// Empty if the version is not too old.
std::string problem_with_version(const LibraryFiles& files, int64_t version, int64_t oldest);

// Finds functions by their names, until one is missing.
class FunctionFinder {
 public:
  explicit FunctionFinder(void* library) : library_(library) {}

  template <typename Function>
  void operator()(const char* name, Function*& function) {
    function = reinterpret_cast<Function*>(find_function(library_, name));
    if (function == nullptr && missing_ == nullptr) missing_ = name;
  }
  const char* missing() const { return missing_; }  // null: none

 private:
  void* const library_;
  const char* missing_ = nullptr;
};

// The functions of a library, or why it cannot be used.
template <typename Functions>
struct OpenedFunctions {
  std::optional<Functions> functions;
  std::string problem;

  const Functions* get(const char** reason) const {
    *reason = problem.c_str();
    return functions ? &*functions : nullptr;
  }
};

// `find` names each member of `Functions` to the finder.
template <typename Functions>
OpenedFunctions<Functions> open_functions(const LibraryFiles& files,
                                          void (*find)(FunctionFinder&, Functions&)) {
  const OpenedLibrary opened = open_library(files);
  if (opened.library == nullptr) return {std::nullopt, opened.problem};
  FunctionFinder finder(opened.library);
  Functions functions{};
  find(finder, functions);
  if (finder.missing() != nullptr) return {std::nullopt, lacks_function(files, finder.missing())};
  return {functions, ""};
}

}  // namespace ingot::core
