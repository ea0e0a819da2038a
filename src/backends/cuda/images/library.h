// SPDX-License-Identifier: Apache-2.0
// NVIDIA's libraries that steps may call instead of a kernel of ours (library_call.h), as records.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "support/library_files.h"

namespace ingot::core::cuda {

struct Library {
  LibraryFiles files;
  const char* version_function;  // of type size_t ()
  int64_t oldest;
  std::string_view suffix;  // of the targets of images
  std::string_view calls;   // in messages: what it computes
  std::string_view packages;
};

// 13.1.0 is 130100, 12.9.1 120901.
inline constexpr Library kCublasLt{
    .files = {"cuBLASLt", "INGOT_CUBLASLT", {"libcublasLt.so.13", "libcublasLt.so.12"}, "12.0"},
    .version_function = "cublasLtGetVersion",
    .oldest = 120000,
    .suffix = "+cublaslt",
    .calls = "products",
    .packages = "nvidia-cublas (or nvidia-cublas-cu12)"};
// 9.28.1 is 92801.
inline constexpr Library kCudnn{.files = {"cuDNN", "INGOT_CUDNN", {"libcudnn.so.9"}, "9.0"},
                                .version_function = "cudnnGetVersion",
                                .oldest = 90000,
                                .suffix = "+cudnn",
                                .calls = "convolutions",
                                .packages = "nvidia-cudnn-cu13 (or nvidia-cudnn-cu12)"};
inline constexpr std::array kLibraries = {&kCublasLt, &kCudnn};

struct LibraryVersion {
  int64_t version = 0;
  std::string problem;  // "": it is here, and not too old
};

inline LibraryVersion version_of(const Library& library) {
  const OpenedLibrary opened = open_library(library.files);
  if (opened.library == nullptr) return {0, opened.problem};
  FunctionFinder find(opened.library);
  size_t (*version)() = nullptr;
  find(library.version_function, version);
  if (find.missing() != nullptr) return {0, lacks_function(library.files, find.missing())};
  const auto own = static_cast<int64_t>(version());
  return {own, problem_with_version(library.files, own, library.oldest)};
}

// `find` as for open_functions; `Functions` has the library's `version`.
template <typename Functions>
OpenedFunctions<Functions> open_library_calls(const Library& library,
                                              void (*find)(FunctionFinder&, Functions&)) {
  const LibraryVersion own = version_of(library);
  if (!own.problem.empty()) return {std::nullopt, own.problem};
  OpenedFunctions<Functions> opened = open_functions(library.files, find);
  if (opened.functions) opened.functions->version = own.version;
  return opened;
}

}  // namespace ingot::core::cuda
