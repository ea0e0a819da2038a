// SPDX-License-Identifier: Apache-2.0
// Products by cuBLASLt: tactics beside those of our own templates, where it can do the whole step.
#pragma once

#include <span>
#include <vector>

#include "backends/cuda/compile/contraction.h"

namespace ingot::core::cuda {

// The library's `choices` best predicted ways to compute the product with its epilogue; none if it cannot.
// `arguments`: of the step; the epilogue's buffers except its first are the last of them.
std::vector<LoweredKernel> library_products(const ContractionSite& site, const loops::Kernel& epilogue,
                                            size_t arguments, int64_t version, int64_t choices);

}  // namespace ingot::core::cuda
