// SPDX-License-Identifier: Apache-2.0
#include "exporters/onnx/unique_names.h"

#include <fmt/core.h>

namespace ingot::core::exported {

std::string UniqueNames::unused(const std::string& wanted) {
  const std::string base = wanted.empty() ? "value" : wanted;
  for (int& count = tried_[base];; ++count) {
    std::string name = count == 0 ? base : fmt::format("{}#{}", base, count + 1);
    if (taken_.insert(name).second) return name;
  }
}

}  // namespace ingot::core::exported
