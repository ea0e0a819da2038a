// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace ingot::core::aten {

inline constexpr std::string_view kTorchDraws =
    "random numbers come from torch's generator, so that its seed decides them; with the option random_seed "
    "the engine draws them";
// Operators whose results are random numbers in every mode.
bool draws_random_numbers(std::string_view target);

// Why no converter takes calls of this overload.
std::string reason_without_converter(std::string_view target);

}  // namespace ingot::core::aten
