// SPDX-License-Identifier: Apache-2.0
// Real matrices by reflections from both sides: P^T x Q is bidiagonal, and Q^T x Q of a symmetric x is
// tridiagonal.
#pragma once

#include "routines/column_kernels.h"
#include "routines/matrices.h"

namespace ingot::core::routines {

// The diagonal, and what is above it.
struct CondensedForm {
  Eigen::VectorXd diagonal, beside;
};

// As product_of_reflections takes them.
struct KeptReflections {
  Matrix vectors;
  Eigen::VectorXd scales;
};

// Of x, which has no more columns than rows. `left` has a reflection per column of x; `right` is of its
// columns after the first. Null: they are not kept.
CondensedForm bidiagonal_of(const Matrix& x, KeptReflections* left, KeptReflections* right);

// The symmetric matrix with this lower triangle; the reflections are of its rows after the first.
CondensedForm tridiagonal_of(const Matrix& lower, KeptReflections* kept);

}  // namespace ingot::core::routines
