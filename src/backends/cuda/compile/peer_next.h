// SPDX-License-Identifier: Apache-2.0
// What follows a reduction of ranks element by element, in the reduction's own kernel (peer_text.h).
#pragma once

#include <optional>
#include <span>
#include <string>

#include "ir/graph.h"
#include "loops/kernel.h"

namespace ingot::core::cuda {

struct PeerNext {
  std::string arguments;  // behind those of the reduction: ", const u16* b0, ..., i64 a0"
  std::string begin;      // of the kernel
  std::string loads;      // of a line, before its elements have come
  std::string line;       // the rest, where they are in `result`, rounded
};

// `next`: a kernel of Loop IR; `reduced`: its buffers that are the result, whose elements have `dtype`.
// nullopt if it is not one map of the result's elements.
std::optional<PeerNext> write_peer_next(const loops::Kernel& next, std::span<const int> reduced, DType dtype);

}  // namespace ingot::core::cuda
