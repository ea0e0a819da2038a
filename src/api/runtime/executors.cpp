// SPDX-License-Identifier: Apache-2.0
#include "api/runtime/executors.h"

#if __has_include("backends/cpu/execute/execute.h")
#include "backends/cpu/execute/execute.h"
#endif
#if __has_include("backends/cuda/execute/execute.h")
#include "backends/cuda/execute/execute.h"
#endif
#if __has_include("backends/null/execute/execute.h")
#include "backends/null/execute/execute.h"
#endif
#if INGOT_HAS_FAKE_DEVICE
#include "backends/fake/execute/execute.h"
#endif

namespace ingot::core::api {

std::vector<const Executor*> executors() {
  return {
#if __has_include("backends/cpu/execute/execute.h")
      &cpu::executor(),
#endif
#if __has_include("backends/cuda/execute/execute.h")
      &cuda::executor(),
#endif
#if __has_include("backends/null/execute/execute.h")
      &null::executor(),
#endif
#if INGOT_HAS_FAKE_DEVICE
      &fake::executor(),
#endif
  };
}

}  // namespace ingot::core::api
