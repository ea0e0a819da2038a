// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "passes/rewrites.h"

namespace ingot::core {

// Part of multiply_quantized. Sums of integers that are scaled, added to others and quantized are multiplied
// twice, by their scale and by that of the quantization: both are known before any run, and so is their
// product.
void scale_to_quantize(Graph& graph, Rewrites& rewrites);

}  // namespace ingot::core
