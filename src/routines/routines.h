// SPDX-License-Identifier: Apache-2.0
// The routines of routines.def. Operands and results are documented at the op record of the same name.
#pragma once

#include <string_view>

#include "routines/routine.h"

namespace ingot::core::routines {

#define ROUTINE(name) void name(const RoutineCall& call);
#include "routines/routines.def"
#undef ROUTINE

const PlainValue& find_attribute(const RoutineCall& call, std::string_view name);
[[noreturn]] void reject_attribute(std::string_view name, const PlainValue& value);
// The value of an attribute: bool, int64_t, double or std::string. UserError INGOT-U330 if the call lacks it,
// U331 if it is of another kind: an engine file may claim anything.
template <typename Kind>
const Kind& attribute(const RoutineCall& call, std::string_view name) {
  const PlainValue& value = find_attribute(call, name);
  const Kind* found = std::get_if<Kind>(&value);
  if (found == nullptr) reject_attribute(name, value);
  return *found;
}

// UserError INGOT-U332 unless `fits`: the tensors are not what the routine accepts. The operators check this,
// but an engine file may claim anything, and sizes known only at run time may be inconsistent.
void require_fit(bool fits, std::string_view routine);

// A tensor viewed as [outer, extent, inner] around one axis.
struct AxisView {
  int64_t outer = 1, extent = 1, inner = 1;
  AxisView(std::span<const int64_t> shape, int64_t axis);
};

}  // namespace ingot::core::routines
