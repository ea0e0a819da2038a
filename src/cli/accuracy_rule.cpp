// SPDX-License-Identifier: Apache-2.0
#include "cli/difference.h"
#include "compiler/accuracy.h"

namespace ingot::cli {

double allowed_by_rule(int32_t dtype, double reference, double rms) {
  return core::allowed_difference(static_cast<core::DType>(dtype), reference, rms);
}

}  // namespace ingot::cli
