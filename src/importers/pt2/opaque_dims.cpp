// SPDX-License-Identifier: Apache-2.0
#include "importers/pt2/opaque_dims.h"

#include <fmt/core.h>

namespace ingot::core::pt2 {

Dim OpaqueDims::of(std::string_view text) {
  const auto [entry, is_new] = known_.try_emplace(std::string(text));
  if (is_new) {
    const std::string name = fmt::format("$computed{}", known_.size() - 1);
    entry->second = Dim::symbol(name);
    symbols_[name].range = {INT64_MIN, INT64_MAX};
  }
  return entry->second;
}

}  // namespace ingot::core::pt2
