// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/backend.h"
#include "backends/steps/members.h"

namespace ingot::core::cuda {

// A region of attention and of what computes its rows.
LoweredStep lower_attention(const Members& members, const Node& attention, const SymbolTable& symbols,
                            const Target& target);

}  // namespace ingot::core::cuda
