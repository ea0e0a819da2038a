// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace ingot::core::aten {

// Why no converter takes calls of this overload.
std::string reason_without_converter(std::string_view target);

}  // namespace ingot::core::aten
