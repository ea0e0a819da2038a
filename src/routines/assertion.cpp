// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "routines/routines.h"
#include "support/error.h"

namespace ingot::core::routines {
void assert_true(const RoutineCall& call) {
  require_fit(call.inputs.size() == 1 && call.inputs[0].dtype == DType::kBool, "assert_true");
  const TensorView& condition = call.inputs[0];
  int64_t elements = 1;
  for (const int64_t size : condition.shape) elements *= size;
  const auto* first = condition.data;
  const bool holds = std::all_of(first, first + elements, [](std::byte b) { return b != std::byte{0}; });
  if (holds) [[likely]]
    return;
  const std::string& message = attribute<std::string>(call, "message");
  throw UserError("INGOT-U313", message.empty() ? "an assertion of the program failed"
                                                : "an assertion of the program failed: " + message);
}

}  // namespace ingot::core::routines
