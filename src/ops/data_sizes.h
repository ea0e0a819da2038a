// SPDX-License-Identifier: Apache-2.0
// Sizes that follow from data. A size is computed like any other value; `bind_size` makes it the value of a
// symbol, and what comes after it may have that symbol in its shape (docs/design/028).
#pragma once

#include "ir/attribute.h"

namespace ingot::core::ops {

struct DataSize {
  Dim size = 0;  // bind_size: the symbol; nonzero: as many elements as are true
  static constexpr auto fields() { return std::tuple{Field{"size", &DataSize::size}}; }
};

}  // namespace ingot::core::ops
