// SPDX-License-Identifier: Apache-2.0
#include "loops/functions.h"

namespace ingot::core::loops {

std::span<const Function* const> all_functions() {
  static constexpr const Function* kFunctions[] = {
#define FUNCTION(name) &functions::name,
#include "loops/functions.def"
#undef FUNCTION
  };
  return kFunctions;
}

}  // namespace ingot::core::loops
