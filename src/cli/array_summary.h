// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "cli/array_file.h"

namespace ingot::cli {

struct Summary {
  double min = 0, max = 0, mean = 0;
};
std::optional<Summary> summarize(
    const Array& array);  // none of empty arrays, and of dtypes that C++ has no type for

}  // namespace ingot::cli
