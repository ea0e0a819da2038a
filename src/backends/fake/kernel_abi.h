// SPDX-License-Identifier: Apache-2.0
// The contract between both halves of the fake backend.
//
// An image is the text of a Loop IR kernel. A launch has one buffer per buffer of the kernel, and the values
// of its free symbols in the order of their names; it has no sizes and no constants. A kernel runs on the
// device's own memory only.
#pragma once

#include <string_view>

namespace ingot::core::fake {

constexpr std::string_view kBackend = "fake";
constexpr std::string_view kDevice = "interpreter";  // the only one

}  // namespace ingot::core::fake
