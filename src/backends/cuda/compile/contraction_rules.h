// SPDX-License-Identifier: Apache-2.0
// Rules: which contractions the tensor core templates compute, and in which layouts.
#pragma once

#include "backends/backend.h"

namespace ingot::core::cuda {

// Whether x has so few rows that its product may be fused with the preceding norm (normalized_linear): the
// bodies for more rows gain nothing by it (docs/design/014-cuda-contractions.md).
bool may_normalize(const TensorType& x);

// Whether each block of `root`, a product of few rows, may compute its operand 0 by `producer`, which is
// elementwise, instead of reading what a kernel of its own has stored.
bool may_compute_rows(const Node& root, const Node& producer);

// Whether one kernel computes both: linear layers of the same few rows, with weights of one shape.
FusionAnswer may_be_twins(const Node& root, const Node& twin);

// Whether the template computes `node` with the layouts that it has.
bool is_tensor_core_contraction(const Node& node);

// The layouts it requests for convolutions; other contractions keep any layout that it can read.
LayoutRequest contraction_layouts(const Node& node);

}  // namespace ingot::core::cuda
