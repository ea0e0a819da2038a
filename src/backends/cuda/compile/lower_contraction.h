// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "backends/backend.h"
#include "backends/steps/members.h"

namespace ingot::core::cuda {

// Adds the ways of cuDNN to compute a step with a convolution. `epilogue` as for kernel templates;
// `arguments` are the step's.
void add_library_convolutions(LoweredStep& step, const Node& convolution, const RegionKernel& epilogue,
                              std::span<const Value* const> arguments, const Target& target);

// Whether the templates compute what the region has besides `contraction`: they read moments, not what is
// made of them elsewhere.
bool knows_statistics(const Members& members, const Node& contraction);

// A region of one contraction, or two (may_be_twins), and what its templates take in.
LoweredStep lower_contraction(const Members& all, const Node& contraction, const SymbolTable& symbols,
                              const Target& target);

}  // namespace ingot::core::cuda
