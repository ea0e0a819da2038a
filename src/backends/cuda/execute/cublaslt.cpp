// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/execute/cublaslt.h"

#include "backends/cuda/execute/library_errors.h"

namespace ingot::core::cuda {
namespace {

void find_cublaslt_functions(FunctionFinder& get, CublasLt& calls) {
  get("cublasLtCreate", calls.create);
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
}

}  // namespace

const CublasLt* find_cublaslt(const char** reason) {
  static const OpenedFunctions<CublasLt> opened = open_library_calls(kCublasLt, find_cublaslt_functions);
  return opened.get(reason);
}

void check(const CublasLt& library, int result, const char* call) {
  if (result != 0) [[unlikely]]
    throw_refused(kCublasLt, call, library.status_name(result));
}

}  // namespace ingot::core::cuda
