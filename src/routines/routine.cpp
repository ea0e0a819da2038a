// SPDX-License-Identifier: Apache-2.0
#include "routines/routine.h"

#include <algorithm>

#include "routines/routines.h"

namespace ingot::core {

std::span<const Routine> all_routines() {
  static constexpr Routine kRoutines[] = {
      {"assert_true", routines::assert_true},
      {"gru", routines::gru},
      {"lstm", routines::lstm},
      {"rnn", routines::rnn},
      {"scatter_add", routines::scatter_add},
      {"scatter_reduce", routines::scatter_reduce},
      {"sort", routines::sort},
      {"top_k", routines::top_k},
  };
  return kRoutines;
}

const Routine* find_routine(std::string_view name) {
  const auto all = all_routines();
  const auto found = std::ranges::find(all, name, &Routine::name);
  return found == all.end() ? nullptr : &*found;
}

}  // namespace ingot::core
