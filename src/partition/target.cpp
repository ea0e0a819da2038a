// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <fmt/ranges.h>

#include "backends/backend.h"

namespace ingot::core {

std::string Target::text() const {
  constexpr std::string_view kNumerics[] = {"strict", "default", "fast"};
  std::string text = fmt::format("{}:{} level={} numerics={}", backend, device, level,
                                 kNumerics[static_cast<size_t>(numerics)]);
  for (const DType dtype : precisions) text += fmt::format(" +{}", name(dtype));
  if (!host_device.empty()) text += fmt::format(" beside cpu:{}", host_device);
  for (const BackendChoice& choice : backend_of)
    text += fmt::format(" [{}\n{}]", choice.pattern, choice.backend);
  if (!keep_precision.empty()) text += fmt::format(" keeps [{}]", fmt::join(keep_precision, "\n"));
  return text;
}

}  // namespace ingot::core
