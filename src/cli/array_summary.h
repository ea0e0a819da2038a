// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/array_file.h"

namespace ingot::cli {

struct Summary {
  double min = 0, max = 0, mean = 0;  // zeros for empty arrays and for dtypes that have no numbers here
};
Summary summarize(const Array& array);

}  // namespace ingot::cli
