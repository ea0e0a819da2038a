// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/graph.h"

namespace ingot::core {

// A lower bound of a step's work, whatever computes it: the denominator of a profile.
struct StepWork {
  Dim operations = 0;  // arithmetic of its nodes' definitions; 0 for routines: unknown
  Dim bytes = 0;       // operands read and results written, each once
};

// For a node of the final graph, fused or single.
StepWork work_of(const Node& node);

}  // namespace ingot::core
