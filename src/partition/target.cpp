// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include "backends/backend.h"

namespace ingot::core {

std::string Target::text() const {
  constexpr std::string_view kNumerics[] = {"strict", "default", "fast"};
  return fmt::format("{}:{} level={} numerics={}", backend, device, level,
                     kNumerics[static_cast<size_t>(numerics)]);
}

}  // namespace ingot::core
