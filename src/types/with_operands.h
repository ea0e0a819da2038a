// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "types/dim.h"

namespace ingot::core {

// The dim of the same kind over these operands: `dim` itself if they are its own.
Dim with_operands(const Dim& dim, std::span<const Dim> operands);

}  // namespace ingot::core
