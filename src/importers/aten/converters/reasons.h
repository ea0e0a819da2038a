// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace ingot::core::aten {

inline constexpr std::string_view kTorchDraws =
    "random numbers come from torch's generator, so that its seed decides them; with the option random_seed "
    "the engine draws them";
// Why no converter takes calls of this overload, in the program's own spelling.
std::string reason_without_converter(std::string_view target);

}  // namespace ingot::core::aten
