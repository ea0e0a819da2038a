// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/execute/cublaslt.h"

#include <optional>

#include <fmt/core.h>

#include "backends/cuda/images/library_call.h"
#include "backends/executor.h"
#include "support/error.h"

namespace ingot::core::cuda {
namespace {

// The name of a function that the library lacks, or null.
const char* find_calls(void* library, CublasLt& calls) {
  const char* missing = nullptr;
  const auto get = [&](const char* name, auto& function) { find_function(library, name, function, missing); };
  get("cublasLtCreate", calls.create);
  get("cublasLtDestroy", calls.destroy);
  get("cublasLtGetStatusName", calls.status_name);
  get("cublasLtMatrixLayoutCreate", calls.create_matrix);
  get("cublasLtMatrixLayoutSetAttribute", calls.set_matrix);
  get("cublasLtMatrixLayoutDestroy", calls.destroy_matrix);
  get("cublasLtMatmulDescCreate", calls.create_product);
  get("cublasLtMatmulDescSetAttribute", calls.set_product);
  get("cublasLtMatmulDescDestroy", calls.destroy_product);
  get("cublasLtMatmulPreferenceCreate", calls.create_wish);
  get("cublasLtMatmulPreferenceSetAttribute", calls.set_wish);
  get("cublasLtMatmulPreferenceDestroy", calls.destroy_wish);
  get("cublasLtMatmulAlgoGetHeuristic", calls.rank);
  get("cublasLtMatmulAlgoConfigGetAttribute", calls.algorithm_attribute);
  get("cublasLtMatmul", calls.multiply);
  return missing;
}

struct OpenedCalls {
  std::optional<CublasLt> calls;
  std::string reason;
};

OpenedCalls open_calls() {
  const OpenedCublasLt opened = open_cublaslt();
  if (!opened.problem.empty()) return {std::nullopt, opened.problem};
  CublasLt calls{};
  if (const char* missing = find_calls(opened.library, calls))
    return {std::nullopt, fmt::format("it lacks {}", missing)};
  calls.version = opened.version;
  return {calls, ""};
}

}  // namespace

const CublasLt* find_cublaslt(const char** reason) {
  static const OpenedCalls opened = open_calls();
  *reason = opened.reason.c_str();
  return opened.calls ? &*opened.calls : nullptr;
}

void check(const CublasLt& library, int result, const char* call) {
  if (result == 0) [[likely]]
    return;
  throw DeviceError(kRefusedByLibrary,
                    fmt::format("cuBLASLt's {} failed: {}", call, library.status_name(result)),
                    "build the engine at optimization level 3, which uses no library, or use the cuBLASLt "
                    "that it was built with");
}

void throw_no_library(const std::string& reason) {
  throw DeviceError(kRefusedByLibrary,
                    fmt::format("the engine has products by cuBLASLt, which cannot be used here: {}", reason),
                    "install the package nvidia-cublas (or nvidia-cublas-cu12), name the file with "
                    "INGOT_CUBLASLT, or build the engine at optimization level 3");
}

}  // namespace ingot::core::cuda
