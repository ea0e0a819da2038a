// SPDX-License-Identifier: Apache-2.0
#include "api/compiler/backends.h"

#include <vector>

#if INGOT_HAS_LLVM && __has_include("backends/cpu/compile/backend.h")
#define INGOT_HAS_CPU_BACKEND 1
#include "backends/cpu/compile/backend.h"
#endif
#if __has_include("backends/cuda/compile/backend.h")
#include "backends/cuda/compile/backend.h"
#endif
#if __has_include("backends/null/compile/backend.h")
#include "backends/null/compile/backend.h"
#endif
#if INGOT_HAS_FAKE_DEVICE
#include "backends/fake/compile/backend.h"
#endif

namespace ingot::core::api {

std::span<const Backend* const> backends() {
  static const std::vector<const Backend*> all = {
#ifdef INGOT_HAS_CPU_BACKEND
      &cpu::backend(),
#endif
#if __has_include("backends/cuda/compile/backend.h")
      &cuda::backend(),
#endif
#if __has_include("backends/null/compile/backend.h")
      &null::backend(),
#endif
#if INGOT_HAS_FAKE_DEVICE
      &fake::backend(),
#endif
  };
  return all;
}

}  // namespace ingot::core::api
