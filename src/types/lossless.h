// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "types/dtype.h"

namespace ingot::core {

// Whether `to` represents every value of `from` exactly, infinities included.
bool is_lossless(DType from, DType to);

}  // namespace ingot::core
