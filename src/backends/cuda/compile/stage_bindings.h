// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <vector>

#include "loops/kernel.h"
#include "loops/rewrite.h"

namespace ingot::core::cuda {

// Whether each binding depends on the loops of the reduction, itself or by earlier bindings.
inline std::vector<bool> inner_bindings(const loops::Stage& stage) {
  std::vector<bool> inner(stage.bindings.size(), false);
  if (stage.reduce.empty()) return inner;
  for (size_t k = 0; k < inner.size(); ++k) {
    const auto& value = stage.bindings[k].value;
    inner[k] = std::ranges::any_of(
        stage.reduce, [&](const loops::Loop& loop) { return loops::uses_symbol(value, loop.variable); });
    for (size_t j = 0; j < k && !inner[k]; ++j)
      inner[k] = inner[j] && loops::uses_symbol(value, stage.bindings[j].symbol);
  }
  return inner;
}

}  // namespace ingot::core::cuda
