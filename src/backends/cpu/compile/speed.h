// SPDX-License-Identifier: Apache-2.0
// What this backend's code is slow at, beside a peer on the same processor (docs/design/012-slow-paths.md).
#pragma once

#include "backends/backend.h"

namespace ingot::core::cpu {

// Fast, or slow with the reason and both predicted times. Of a node that has a kernel, in the form in which
// the backend asked for it. Below the level that assigns layouts everything counts as fast: slowness was
// asked for.
Support judge_speed(const Node& node, const SymbolValues& sizes, const Target& target);

// Whether a node that interpolates is fast along the channels: its elements at computed places are contiguous
// there only.
bool prefers_channels_last(const Node& node);

}  // namespace ingot::core::cpu
