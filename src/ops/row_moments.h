// SPDX-License-Identifier: Apache-2.0
// Norms in two parts: whoever computes a row keeps the moments of its parts, and whoever reads the row makes
// its mean and its deviation of them. All are forms for targets.
#pragma once

#include <cstdint>

#include "ir/attribute.h"
#include "ir/graph.h"

namespace ingot::core::ops {

constexpr int64_t kMomentNeighbours = 32;  // elements of a part
constexpr int64_t kMostParts = 64;         // of a row, whose moments each reader adds up

// f32[..., D] -> f32[..., D / 32, 2]: of each part the mean, and the squares of distances from it added up.
extern const Op row_moments;

// f32[..., parts, 2] -> f32[..., 1]: the mean of the row.
extern const Op row_mean;

// The same: 1 / sqrt(variance + epsilon), or of the mean square if it is not centered.
struct RowScale {
  double epsilon = 1e-5;
  bool centered = true;
  static constexpr auto fields() {
    return std::tuple{Field{"epsilon", &RowScale::epsilon}, Field{"centered", &RowScale::centered}};
  }
};
extern const Op row_scale;

// Whether the node is one of the last two: made of few numbers, where it is read.
bool is_row_statistic(const Node& node);

}  // namespace ingot::core::ops
