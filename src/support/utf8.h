// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace ingot::core {

bool is_utf8(std::string_view text);

}  // namespace ingot::core
