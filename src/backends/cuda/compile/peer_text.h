// SPDX-License-Identifier: Apache-2.0
// Short reductions of ranks by their GPUs themselves (kernel_abi.h).
#pragma once

#include <string>

#include "backends/cuda/compile/peer_next.h"
#include "ir/graph.h"

namespace ingot::core::cuda {

// Sums and averages of f32, f16 and bf16.
bool has_peer_kernel(const Node& node);
std::string peer_entry(const Node& all_reduce);  // the kernel's name: "ingot_peer_sum_f16"
// Its text, without the prelude. `next`: what the kernel of the next step does with the lines of the sum.
std::string write_peer_kernel(const Node& all_reduce, const PeerNext& next = {});

}  // namespace ingot::core::cuda
