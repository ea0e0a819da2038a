// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/core.h>

#include "routines/routines.h"
#include "support/error.h"

namespace ingot::core::routines {

const PlainValue& find_attribute(const RoutineCall& call, std::string_view name) {
  const auto found = std::ranges::find(call.attributes, name, &NamedValue::name);
  if (found == call.attributes.end())
    throw UserError("INGOT-U330", fmt::format("a routine lacks its attribute '{}'", name));
  return found->value;
}

void reject_attribute(std::string_view name, const PlainValue& value) {
  throw UserError("INGOT-U331",
                  fmt::format("the attribute '{}' of a routine cannot be {}", name, to_string(value)));
}

void require_fit(bool fits, std::string_view routine) {
  if (fits) return;
  throw UserError("INGOT-U332",
                  fmt::format("the tensors of the routine '{}' have inconsistent shapes or dtypes", routine));
}

AxisView::AxisView(std::span<const int64_t> shape, int64_t axis) {
  for (size_t i = 0; i < shape.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    (at < axis ? outer : at == axis ? extent : inner) *= shape[i];
  }
}

}  // namespace ingot::core::routines
