// SPDX-License-Identifier: Apache-2.0
// Regularized incomplete gamma functions, of many pairs of an order and an argument at a time.
#pragma once

#include <cstdint>

namespace ingot::core::routines {

struct GammaPairs {
  const double* orders;
  const double* arguments;
  double* results;
  int64_t count;
  bool is_upper;
  double tolerance;  // relative, of the last term of a series or fraction; epsilon: errors are about 1e-13
};

// Results do not depend on the other pairs. At poles and outside of the domain they are torch's.
void incomplete_gammas(const GammaPairs& pairs);

}  // namespace ingot::core::routines
