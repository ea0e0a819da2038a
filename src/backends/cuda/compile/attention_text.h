// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace ingot::core::cuda {

// The body of attention; attention.cpp declares what it needs.
std::string_view attention_body();

}  // namespace ingot::core::cuda
