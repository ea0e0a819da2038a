// SPDX-License-Identifier: Apache-2.0
// The routines of routines.def. Operands and results are documented at the op record of the same name.
#pragma once

#include <string_view>

#include "routines/routine.h"

namespace ingot::core::routines {

#define ROUTINE(name) void name(const RoutineCall& call);
#include "routines/routines.def"
#undef ROUTINE

// Value of one attribute of "axis=1 descending=true".
int64_t integer_attribute(const RoutineCall& call, std::string_view name);
bool flag_attribute(const RoutineCall& call, std::string_view name);
std::string_view text_attribute(const RoutineCall& call, std::string_view name);  // of reduce="mean"

// UserError INGOT-U332 unless `fits`: the tensors are not what the routine accepts. The operators check this,
// but an engine file may claim anything, and sizes known only at run time may be inconsistent.
void require_fit(bool fits, std::string_view routine);

// A tensor viewed as [outer, extent, inner] around one axis.
struct AxisView {
  int64_t outer = 1, extent = 1, inner = 1;
  AxisView(std::span<const int64_t> shape, int64_t axis);
};

}  // namespace ingot::core::routines
