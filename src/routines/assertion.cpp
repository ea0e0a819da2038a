// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "routines/routines.h"
#include "support/error.h"

namespace ingot::core::routines {
namespace {

// The value of message="...", the only attribute: it may contain spaces and quotes.
std::string message_of(std::string_view attributes) {
  constexpr std::string_view kBegin = "message=\"";
  if (!attributes.starts_with(kBegin) || attributes.size() == kBegin.size()) return {};
  std::string text;
  for (size_t i = kBegin.size(); i + 1 < attributes.size(); ++i) {
    const bool escaped = attributes[i] == '\\' && i + 2 < attributes.size();
    if (escaped) ++i;
    text += escaped && attributes[i] == 'n' ? '\n' : attributes[i];
  }
  return text;
}

}  // namespace

void assert_true(const RoutineCall& call) {
  require_fit(call.inputs.size() == 1 && call.inputs[0].dtype == DType::kBool, "assert_true");
  const TensorView& condition = call.inputs[0];
  int64_t elements = 1;
  for (const int64_t size : condition.shape) elements *= size;
  const auto* first = condition.data;
  const bool holds = std::all_of(first, first + elements, [](std::byte b) { return b != std::byte{0}; });
  if (holds) [[likely]]
    return;
  const std::string message = message_of(call.attributes);
  throw UserError("INGOT-U313", message.empty() ? "an assertion of the program failed"
                                                : "an assertion of the program failed: " + message);
}

}  // namespace ingot::core::routines
