// SPDX-License-Identifier: Apache-2.0
// Steps that call cuBLASLt instead of a kernel: how their launches and images say so, for both halves of the
// backend. Such a launch has no threads (kBlock is 0), and its scratch bytes are those of the whole call.
//
// The image of a library call is a description for people; its target ends with kLibrarySuffix, so that a
// runtime without library calls, or without the library, refuses the engine when it is loaded.
#pragma once

#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "backends/cuda/kernel_abi.h"
#include "engine/program.h"
#include "support/shared_library.h"

namespace ingot::core::cuda {

constexpr std::string_view kLibrarySuffix = "+cublaslt";

inline bool calls_library(const Image& image) { return image.target.ends_with(kLibrarySuffix); }
inline bool calls_library(const Launch& launch) {
  return launch.constants.size() > kLaunchConstants && launch.constants[kBlock] == 0;
}
// "sm_90a" of an image of either kind.
inline std::string_view architecture_of(const Image& image) {
  std::string_view device = device_of(image);
  if (calls_library(image)) device.remove_suffix(kLibrarySuffix.size());
  return device;
}

// result[batch, rows, columns] = a[batch, rows, depth] b[batch, depth, columns] + bias[columns] + added,
// where operands are contiguous and all of one dtype; `added` is as large as the result.
enum LibrarySize : uint8_t {
  kLibraryBatch = kLaunchSizes,
  kLibraryRows,
  kLibraryColumns,
  kLibraryDepth,
  kLibrarySizes
};
enum LibraryConstant : uint8_t {
  kLibraryVersion = kLaunchConstants,  // that was asked when the engine was built: 130100
  kLibraryChoice,  // which of the library's own ranking; of another version the first is taken
  kLibraryForm,    // of LibraryForm
  kLibraryDtype,   // of operands and result
  kLibraryBias,    // the argument that is the bias, or -1
  kLibraryAdded,   // likewise
  kLibraryResult,
  kLibraryConstants
};
enum LibraryForm : uint8_t {
  kSharesA = 1,       // the whole batch multiplies the same a
  kSharesB = 2,       // ... or the same b
  kDepthInner = 4,    // b is [batch, columns, depth] in memory
  kRoundsToTf32 = 8,  // of f32
  kLibraryForms = 16 - 1
};
constexpr int64_t kLibraryChoices = 8;
constexpr int64_t kLibraryWorkspace = int64_t{32} << 20, kMostLibraryWorkspace = int64_t{1} << 30;
constexpr int64_t kOldestLibrary = 120000;

struct OpenedCublasLt {
  void* library = nullptr;
  int64_t version = 0;
  std::string problem;  // "": it is open, and not too old
};

// From $INGOT_CUBLASLT or the loader's path.
inline OpenedCublasLt open_cublaslt() {
  const char* path = std::getenv("INGOT_CUBLASLT");
  const bool is_named = path != nullptr && *path != '\0';
  OpenedCublasLt opened;
  for (const char* name : {is_named ? path : "libcublasLt.so.13", "libcublasLt.so.12"}) {
    std::string problem;
    opened.library = open_shared_library(name, problem);
    if (opened.library != nullptr) break;
    opened.problem += (opened.problem.empty() ? "it cannot be opened: " : "; ") + problem;
    if (is_named) break;
  }
  if (opened.library == nullptr) return opened;
  size_t (*version)() = nullptr;
  const char* missing = nullptr;
  find_function(opened.library, "cublasLtGetVersion", version, missing);
  opened.problem = missing != nullptr ? std::string("it lacks ") + missing : "";
  if (missing != nullptr) return opened;
  // 13.1.0 is 130100, 12.9.1 120901.
  opened.version = static_cast<int64_t>(version());
  if (opened.version < kOldestLibrary)
    opened.problem = "it is too old: its version is " + std::to_string(opened.version) + ", 12.0 is needed";
  return opened;
}

}  // namespace ingot::core::cuda
