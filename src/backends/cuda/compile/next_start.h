// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/core.h>

namespace ingot::core::cuda {

// When blocks of the next kernel may start on processors that have room (programmatic dependent launch): the
// earlier, the more of its start is hidden, and the more its copies compete with those of this kernel.
enum class NextStart : uint8_t { kAtOnce, kWithOperands, kAtEnd };

constexpr std::string_view name(NextStart start) {
  switch (start) {
    case NextStart::kAtOnce:
      return "at once";
    case NextStart::kWithOperands:
      return "with operands";
    default:
      return "at end";
  }
}

// What the bodies of templates read: kAtEnd needs no instruction.
inline std::string next_start_constants(NextStart start) {
  return fmt::format("constexpr bool kNextAtOnce = {}, kNextWithOperands = {};\n",
                     start == NextStart::kAtOnce, start == NextStart::kWithOperands);
}

}  // namespace ingot::core::cuda
