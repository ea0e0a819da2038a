// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/attribute.h"

namespace ingot::core::ops {

struct IndexedAxes {  // index, index_put: the axes that the index operands replace, sorted
  std::vector<int64_t> axes;
  static constexpr auto fields() { return std::tuple{Field{"axes", &IndexedAxes::axes}}; }
};

}  // namespace ingot::core::ops
