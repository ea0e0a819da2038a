// SPDX-License-Identifier: Apache-2.0
#include "backends/fake/execute/images.h"

#include <fmt/core.h>

#include "backends/fake/execute/parse_text.h"
#include "support/error.h"

namespace ingot::core::fake {

std::unique_ptr<const LoadedKernel> load_kernel(const Image& image) {
  const std::string_view text(reinterpret_cast<const char*>(image.code.data()), image.code.size());
  try {
    auto loaded = std::make_unique<LoadedKernel>(LoadedKernel{loops::parse_kernel(text), {}});
    loaded->symbols = loops::free_symbols(loaded->kernel);
    return loaded;
  } catch (const UserError& error) {
    ErrorDetails details = error.details();
    details.message = fmt::format("the kernel binary '{}': {}", image.kernel, details.message);
    throw UserError(std::move(details));
  }
}

}  // namespace ingot::core::fake
