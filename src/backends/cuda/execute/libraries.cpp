// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/execute/libraries.h"

#include "backends/cuda/execute/cublaslt.h"
#include "backends/cuda/execute/cudnn.h"

namespace ingot::core::cuda {

int64_t find_library(const Library& library, const char** reason) {
  const auto version = [](const auto* calls) { return calls != nullptr ? calls->version : 0; };
  return &library == &kCudnn ? version(find_cudnn(reason)) : version(find_cublaslt(reason));
}

}  // namespace ingot::core::cuda
