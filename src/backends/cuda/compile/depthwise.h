// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions of f16, bf16 and f32, channels last, with their epilogues.
#pragma once

#include "backends/cuda/compile/template_text.h"
#include "loops/kernel.h"

namespace ingot::core::cuda {

// Whether the template computes `convolution` with the layouts that it has.
bool is_depthwise(const Node& convolution);

// Channels innermost.
Layout depthwise_weight_layout();

// `epilogue`, `exact_functions` and the kernel's buffers: as for `write_contraction`.
TemplateKernel write_depthwise(const Node& convolution, const SymbolTable& symbols,
                               const loops::Kernel& epilogue, bool exact_functions);

}  // namespace ingot::core::cuda
