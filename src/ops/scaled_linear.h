// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/attribute.h"
#include "ir/op.h"

namespace ingot::core::ops {

extern const Op scaled_linear;

struct ScaledLinear {
  bool packed = false;  // a byte of the weight holds two unsigned elements of four bits, the first one low
  int64_t offset = 0;   // added to every zero point: 8 for signed elements that are packed
  static constexpr auto fields() {
    return std::tuple{Field{"packed", &ScaledLinear::packed}, Field{"offset", &ScaledLinear::offset}};
  }
};

enum ScaledOperand : size_t { kScaledX, kScaledWeight, kScales, kZeroPoints };

}  // namespace ingot::core::ops
