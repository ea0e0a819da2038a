// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "cli/array.h"

namespace ingot::cli {

struct Summary {
  double min = 0, max = 0, mean = 0;
};
std::optional<Summary> summarize(
    const Array& array);  // zero for empty arrays, and for dtypes without a C++ type

}  // namespace ingot::cli
