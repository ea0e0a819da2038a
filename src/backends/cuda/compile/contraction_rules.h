// SPDX-License-Identifier: Apache-2.0
// Which contractions the templates for tensor cores compute, and in which layouts.
#pragma once

#include "backends/backend.h"

namespace ingot::core::cuda {

// Whether x has so few rows that a product of them may stand behind a norm (normalized_linear): the bodies
// for more rows gain nothing by it (docs/design/014-cuda-contractions.md).
bool may_normalize(const TensorType& x);

// Whether the template computes `node` with the layouts that it has.
bool is_tensor_core_contraction(const Node& node);

// Layouts that it wants of convolutions; of others any that it can read.
LayoutRequest contraction_layouts(const Node& node);

}  // namespace ingot::core::cuda
