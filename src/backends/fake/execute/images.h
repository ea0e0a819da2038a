// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backends/executor.h"
#include "loops/kernel.h"

namespace ingot::core::fake {

// A kernel as it was read from its image.
struct LoadedKernel {
  loops::Kernel kernel;
  std::vector<std::string> symbols;  // its free symbols, as launches have their values
};

// The images of an engine, one each; null for those of other backends.
struct Images final : LoadedImages {
  std::vector<std::unique_ptr<const LoadedKernel>> kernels;
};

// UserError INGOT-U110 if the image is not the text of a kernel.
std::unique_ptr<const LoadedKernel> load_kernel(const Image& image);

}  // namespace ingot::core::fake
