// SPDX-License-Identifier: Apache-2.0
#include "routines/routine_table.h"

#include <algorithm>

#include "routines/routines.h"

namespace ingot::core {

std::span<const Routine> all_routines() {
  static constexpr Routine kRoutines[] = {
#define ROUTINE(name) {#name, routines::name},
#include "routines/routines.def"
#undef ROUTINE
  };
  return kRoutines;
}

const Routine* find_routine(std::string_view name) {
  const auto all = all_routines();
  const auto found = std::ranges::find(all, name, &Routine::name);
  return found == all.end() ? nullptr : &*found;
}

}  // namespace ingot::core
