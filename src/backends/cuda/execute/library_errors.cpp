// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/execute/library_errors.h"

#include <fmt/core.h>

#include "backends/executor.h"
#include "support/error.h"

namespace ingot::core::cuda {

void throw_no_library(const Library& library, const std::string& reason) {
  throw DeviceError(
      kRefusedByLibrary,
      fmt::format("the engine has {} by a library that cannot be used here: {}", library.calls, reason),
      fmt::format("install the package {}, name the file with {}, or build the engine at "
                  "optimization level 3",
                  library.packages, library.files.variable));
}

void throw_refused(const Library& library, const std::string& call, const std::string& error) {
  throw DeviceError(kRefusedByLibrary, fmt::format("{}'s {} failed: {}", library.files.name, call, error),
                    fmt::format("build the engine at optimization level 3, which uses no library, or use the "
                                "{} that it was built with",
                                library.files.name));
}

}  // namespace ingot::core::cuda
