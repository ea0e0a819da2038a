// SPDX-License-Identifier: Apache-2.0
// The arithmetic of sizes: int64, where overflow and division by zero throw UserError.
#pragma once

#include <cstdint>

namespace ingot::core {

int64_t checked_add(int64_t a, int64_t b);
int64_t checked_multiply(int64_t a, int64_t b);
int64_t checked_floor_divide(int64_t a, int64_t b);
int64_t checked_modulo(int64_t a, int64_t b);

}  // namespace ingot::core
