// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/precision.h"

#include <algorithm>

#include "ops/ops.h"

namespace ingot::core::cuda {

PrecisionChoice choose_precision(const PrecisionSite& site, const Target& target) {
  const Op* const supported[] = {&ops::linear, &ops::matmul, &ops::convolution, &ops::convolution_transpose,
                                 &ops::attention};
  if (std::ranges::find(supported, site.contraction.op) == std::end(supported))
    return {.reason = "tensor cores do not compute this operator"};
  const DType dtype = target.precisions.front();
  return {.operands = dtype, .weight = dtype};
}

}  // namespace ingot::core::cuda
