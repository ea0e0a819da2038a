// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/cpu/compile/templates/panel_kernel.h"

namespace ingot::core::cpu {

// Row pointers if row r of A is contiguous, starting at r * row_numbers + group * group_numbers. Missing rows
// repeat the last one.
void fill_plain_rows(const RowRequest& request, int64_t row_numbers, int64_t group_numbers, int tile_rows);

}  // namespace ingot::core::cpu
