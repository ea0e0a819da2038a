// SPDX-License-Identifier: Apache-2.0
// Collectives: the queue does them by NCCL, on the values where they are.
#pragma once

#include "ir/graph.h"

namespace ingot::core::cuda {

// Whether NCCL has the collective for the dtype of its operand. Others run on the host.
bool is_collective_of_nccl(const Node& node);

}  // namespace ingot::core::cuda
