// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "routines/matrices.h"

namespace ingot::core::routines {

template <typename Given>
struct Singular {
  Given u, v;
  Eigen::VectorXd values;
};
enum class Vectors : uint8_t { kNone, kFew, kAll };  // kFew: as many as there are values

// Descending values. NaN where the matrix is not finite, or nothing was found.
template <typename Given>
Singular<Given> singular_of(const Given& x, Vectors wanted);

}  // namespace ingot::core::routines
