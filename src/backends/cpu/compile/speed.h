// SPDX-License-Identifier: Apache-2.0
// Nodes that this backend runs slower than a peer on the same processor (docs/design/012-slow-paths.md).
#pragma once

#include "backends/backend.h"

namespace ingot::core::cpu {

// Fast, or slow with the reason and both predicted times. Expects nodes with kernels in the form that the
// backend requested. Below the level that assigns layouts everything counts as fast: slowness was requested.
Support judge_speed(const Node& node, const SymbolValues& sizes, const Target& target);

// Whether an interpolating node is fast along the channels: only there are its gathered elements contiguous.
// It is where they fill vectors, or there are so many that an incomplete one does not matter.
bool prefers_channels_last(const Node& node, const Target& target);

// Roughly, of a node that is not slow, on one thread.
double predicted_ns(const Node& node, const SymbolValues& sizes);

}  // namespace ingot::core::cpu
