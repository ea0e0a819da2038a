// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/attribute.h"
#include "ir/op.h"

namespace ingot::core::ops {

struct Normalization {  // layer_norm, rms_norm over the last `axes` dims
  double epsilon = 1e-5;
  int64_t axes = 1;
  static constexpr auto fields() {
    return std::tuple{Field{"epsilon", &Normalization::epsilon}, Field{"axes", &Normalization::axes}};
  }
};

// Operands of normalized_linear. The sums are of the weight's rows: without them the mean counts as 0. If the
// scale of the rows is given, and the mean unless it counts as 0, neither is computed.
enum : size_t { kNormalizedBias = 2, kNormalizedSums, kNormalizedMean, kNormalizedScale };

struct NormalizedLinear {
  double epsilon = 1e-5;
  static constexpr auto fields() { return std::tuple{Field{"epsilon", &NormalizedLinear::epsilon}}; }
};

extern const Op normalized_linear;

struct GroupNorm {
  int64_t groups = 1;
  double epsilon = 1e-5;
  static constexpr auto fields() {
    return std::tuple{Field{"groups", &GroupNorm::groups}, Field{"epsilon", &GroupNorm::epsilon}};
  }
};

}  // namespace ingot::core::ops
