// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "importers/aten/converters/terms.h"

namespace ingot::core::aten {

// i64, uniform over all 64 bits. Rejects calls whose random numbers are torch's. The distributions are rows
// of core/random.def.
Term random_bits(Call& call, const Shape& shape);

}  // namespace ingot::core::aten
