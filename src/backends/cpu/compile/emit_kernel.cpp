// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/emit_kernel.h"

#include "backends/cpu/compile/llvm/loops_emitter.h"

namespace ingot::core::cpu {

Image emit_kernel(const PreparedKernel& prepared) {
  Code code(prepared.features);
  return make_image(code, emit_loops_function(code, prepared, prepared.kernel.name));
}

}  // namespace ingot::core::cpu
