// SPDX-License-Identifier: Apache-2.0
// Loops that must not remain loops: arrays that they index stay in registers.
#pragma once

#include <type_traits>
#include <utility>

#include "support/target_attribute.h"

namespace ingot::core::routines {

// body(integral_constant<int, i>) for i < Count. Lambdas passed to it need the attribute always_inline.
template <int Count, typename Body>
INGOT_INLINE void unrolled(const Body& body) {
  [&]<int... I>(std::integer_sequence<int, I...>) __attribute__((always_inline)) {
    (body(std::integral_constant<int, I>()), ...);
  }(std::make_integer_sequence<int, Count>());
}

}  // namespace ingot::core::routines
