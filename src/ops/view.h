// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/attribute.h"
#include "ops/slice.h"

namespace ingot::core::ops {

struct Axes {
  std::vector<int64_t> axes;
  static constexpr auto fields() { return std::tuple{Field{"axes", &Axes::axes}}; }
};

struct Permutation {  // transpose: result dim i is operand dim order[i]
  std::vector<int64_t> order;
  static constexpr auto fields() { return std::tuple{Field{"order", &Permutation::order}}; }
};

struct Relayout {  // the same logical tensor in another layout
  Layout layout;
  static constexpr auto fields() { return std::tuple{Field{"layout", &Relayout::layout}}; }
};

}  // namespace ingot::core::ops
