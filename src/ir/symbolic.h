// SPDX-License-Identifier: Apache-2.0
// What changes with the sizes of inputs.
#pragma once

#include <algorithm>

#include "ir/graph.h"

namespace ingot::core {

inline bool is_symbolic(const Shape& shape) { return !std::ranges::all_of(shape, &Dim::is_constant); }

inline bool has_symbolic_attributes(const Node& node) {
  return std::ranges::any_of(node.values, [](const AttributeValue& value) {
    if (const Dim* dim = std::get_if<Dim>(&value)) return !dim->is_constant();
    const auto* dims = std::get_if<std::vector<Dim>>(&value);
    return dims != nullptr && is_symbolic(*dims);
  });
}

}  // namespace ingot::core
