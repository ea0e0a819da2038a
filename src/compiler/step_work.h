// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/graph.h"

namespace ingot::core {

// What a step has to do at least, whatever computes it: the denominator of a profile.
struct StepWork {
  Dim operations = 0;  // arithmetic of its nodes' definitions; of routines unknown, 0
  Dim bytes = 0;       // operands that it reads and results that it writes, each once
};

// Of a node of the final graph, fused or single.
StepWork work_of(const Node& node);

}  // namespace ingot::core
