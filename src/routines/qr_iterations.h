// SPDX-License-Identifier: Apache-2.0
// Implicit iterations of QR, which make matrices diagonal that nearly are.
#pragma once

#include "routines/condensed_forms.h"

namespace ingot::core::routines {

// The diagonal becomes the eigenvalues of the symmetric tridiagonal matrix, in no order; `vectors` rotates
// the columns of what diagonalizes it, if it is not null. False: they did not converge.
bool find_eigenvalues(CondensedForm& form, ColumnRotations* vectors);

// The same of a bidiagonal matrix: its singular values, which may be negative.
bool find_singular_values(CondensedForm& form, ColumnRotations* left, ColumnRotations* right);

}  // namespace ingot::core::routines
