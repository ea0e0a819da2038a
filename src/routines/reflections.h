// SPDX-License-Identifier: Apache-2.0
// Reflections I - s v v^H, where v is zero above the diagonal and 1 on it: what LAPACK's geqrf returns.
#pragma once

#include "routines/matrices.h"

namespace ingot::core::routines {

// x becomes r on and above its diagonal, and below it the v of the reflections whose product is q; `scales`
// become their s.
template <typename Given>
void factor_qr(Eigen::Ref<Given> x, Eigen::Ref<VectorOf<Given>> scales);

// The first columns of q, as many as `vectors` has.
template <typename Given>
Given product_of_reflections(const Given& vectors, const VectorOf<Given>& scales);

}  // namespace ingot::core::routines
