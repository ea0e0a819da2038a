// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/backend.h"

namespace ingot::core::cuda {

// Fast, or slow with the reason and both predicted times: contractions that no template computes are plain
// loops. Expects nodes with the layouts that the backend requested; below the level that assigns layouts
// everything counts as fast: slowness was requested.
Support judge_speed(const Node& node, const SymbolValues& sizes, const Target& target);

// The same of an operator with a routine: without a kernel it runs on the host.
Support judge_routine(const Node& node, const SymbolValues& sizes);

// Roughly, of a node that is not slow.
double predicted_ns(const Node& node, const SymbolValues& sizes);

}  // namespace ingot::core::cuda
