// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/cuda/compile/product_shape.h"
#include "backends/cuda/compile/template_text.h"
#include "loops/kernel.h"

namespace ingot::core::cuda {

// The statements that finish the sums of a tile and store them. `epilogue`: as for `write_contraction`, its
// functions expanded; `wide`: neighbours of a row that a thread finishes at a time, 8 or 1 (kWide).
void write_contraction_epilogue(const Node& contraction, const ProductShape& shape,
                                const loops::Kernel& epilogue, int wide, TemplateText& out);

}  // namespace ingot::core::cuda
