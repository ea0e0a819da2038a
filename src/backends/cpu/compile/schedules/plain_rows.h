// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/cpu/compile/schedules/panel_kernel.h"

namespace ingot::core::cpu {

// Row pointers where row r of A is one run of numbers that starts at r * row_numbers + group * group_numbers.
// Rows that do not exist repeat the last.
void fill_plain_rows(const RowRequest& request, int64_t row_numbers, int64_t group_numbers, int tile_rows);

}  // namespace ingot::core::cpu
