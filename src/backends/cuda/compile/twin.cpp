// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/twin.h"

namespace ingot::core::cuda {

std::string operands_of_twins(const Twin& twin) {
  if (!twin) return "DEVICE const Operands& operands_of(const Operands& x, int) { return x; }\n";
  return "DEVICE Operands operands_of(const Operands& x, int product) {\nOperands own = x;\n"
         "if (product > 0) own.b = x.twin_b;\nreturn own;\n}\n";
}

}  // namespace ingot::core::cuda
